"""Under asyncio: calls that would block the event loop raise an error with advice."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.queues import QueueServer
from tests.queues.conftest import Serve
from tests.queues.members import NAME, create_queue_group

pytestmark = pytest.mark.usefixtures("transactional_db")


def in_an_event_loop(work: Callable[[], object]) -> None:
    """Call ``work`` in a coroutine."""

    async def run() -> None:
        work()

    asyncio.run(run())


class TestAServer:
    def test_is_not_started_in_an_event_loop(self) -> None:
        create_queue_group(1)
        with pytest.raises(BadOption, match=r"asyncio.to_thread"):
            in_an_event_loop(QueueServer(NAME).start)

    @pytest.mark.parametrize("what", ["queues", "wait", "working"])
    def test_gives_no_work_to_an_event_loop(self, serve: Serve, what: str) -> None:
        server = serve("A", 1)
        mine = server.held[0]
        begin: dict[str, Callable[[], Any]] = {
            "queues": lambda: next(server.queues()),
            "wait": lambda: server.wait(60),
            "working": lambda: mine.working().__enter__(),
        }
        with pytest.raises(BadOption, match=r"asyncio.to_thread"):
            in_an_event_loop(begin[what])
        assert not mine.is_in_hand

    def test_runs_in_a_thread_beside_an_event_loop(self, serve: Serve) -> None:
        server = serve("A", 3)
        worked: list[str] = []

        async def work(queue_id: str) -> None:
            worked.append(queue_id)

        async def main() -> None:
            loop = asyncio.get_running_loop()

            def go_through() -> None:
                for queue in server.queues():
                    asyncio.run_coroutine_threadsafe(work(queue.queue_id), loop).result()

            await asyncio.to_thread(go_through)

        asyncio.run(main())
        assert worked == ["1", "2", "3"]
