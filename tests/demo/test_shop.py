"""The target site bans a greedy proxy, and unbans it later."""

import pytest

from examples.demo.shop import BAN, LIMIT, WINDOW, Shop


@pytest.fixture
def shop(tmp_path):
    with Shop(tmp_path / "log") as shop:
        yield shop


def test_a_polite_proxy_is_never_banned(shop):
    assert all(shop.is_welcome("p1", moment * 1.1 * WINDOW / LIMIT) for moment in range(10 * LIMIT))


def test_a_greedy_proxy_is_banned_alone_and_for_a_while(shop):
    assert [shop.is_welcome("p1", 100) for _ in range(LIMIT + 1)] == [True] * LIMIT + [False]
    assert shop.is_welcome("p2", 100)
    assert not shop.is_welcome("p1", 100 + BAN - 0.1)
    assert shop.is_welcome("p1", 100 + BAN)


def test_the_ban_is_in_the_log_at_once(shop, tmp_path):
    for _ in range(LIMIT + 1):
        shop.is_welcome("p1", 100)
    assert '"event": "banned", "proxy": "p1"' in (tmp_path / "log").read_text()
