"""Imports that are refused or fail import nothing."""

from typing import Any

import pytest
from django.db import IntegrityError, InterfaceError, connection
from django.test.utils import CaptureQueriesContext

from resourcepool.db.dialect import ErrorKind
from resourcepool.exceptions import DatabaseUnavailable, ImportRefused
from resourcepool.models import Proxy
from resourcepool.proxies.importer import ProxyImporter
from resourcepool.resources import import_plan, importer
from resourcepool.resources.import_plan import ImportPlan
from resourcepool.resources.import_result import BadLines
from tests.app.rows import new
from tests.proxies.import_helpers import ALL, JOE, Import, hosts, numbers, rows

pytestmark = pytest.mark.django_db


class TestNothingOrAll:
    def test_bad_lines_keep_the_good_ones_out(self, import_text: Import) -> None:
        with pytest.raises(BadLines) as refused:
            import_text("a.example:80\nb.example:0")
        assert str(refused.value).splitlines()[0].endswith("proxies.csv: nothing was imported; bad lines: 1")
        assert "line 2: port: not a whole number from 1 to 65535" in str(refused.value)
        assert rows() == []

    def test_skip_bad_lets_the_good_ones_in(self, import_text: Import) -> None:
        done = import_text("a.example:80\nb.example:0", skip_bad=True)
        assert numbers(done) == (1, 0, 0, 0)
        assert [str(line) for line in done.bad] == ["line 2: port: not a whole number from 1 to 65535"]
        assert hosts() == ["a.example"]

    def test_skip_bad_refuses_a_file_without_a_good_line(self, import_text: Import) -> None:
        with pytest.raises(BadLines):
            import_text("b.example:0", skip_bad=True)

    def test_skip_bad_refuses_a_file_that_has_too_many_to_be_a_list_of_proxies(
        self, import_text: Import
    ) -> None:
        with pytest.raises(BadLines, match="stopped reading here: bad lines: 10,000"):
            import_text("a.example:80\n" + "x\n" * 20_000, skip_bad=True)
        assert rows() == []

    def test_skip_bad_imports_the_first_of_two_that_are_the_same(self, import_text: Import) -> None:
        import_text("host,port,weight\na.example,80,2\na.example,80,3", skip_bad=True)
        assert Proxy.objects.get().weight == 2

    def test_a_dry_run_says_the_same_and_writes_nothing(self, import_text: Import) -> None:
        import_text("host,port,weight\na.example,80,2\nb.example,80,2\nc.example,80,2")
        Proxy.objects.filter(host="c.example").retire("old")
        before = rows()
        text = "host,port,weight\na.example,80,3\nc.example,80,2\nd.example,80,1"
        with CaptureQueriesContext(
            connection,
        ) as queries:
            dry = import_text(text, update=True, sync=True, dry_run=True)
        assert all(query["sql"].startswith("SELECT") for query in queries)
        assert rows() == before
        assert dry == import_text(text, update=True, sync=True)
        assert numbers(dry) == (1, 2, 0, 1)

    @pytest.mark.parametrize("stage", ["read", "compared", "prepared", "stored", "changed"])
    def test_an_interruption_leaves_nothing_half_done(
        self, import_text: Import, stage: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(import_plan, "STEP", 1)
        monkeypatch.setattr(importer, "PROGRESS_EVERY", 1)
        header = "host,port,username,password,weight\n"
        import_text(header + "a.example,80,joe,1,1\nz.example,80,joe,1,1")
        before = [(row["host"], row["weight"], row["status"]) for row in rows()]

        def interrupt(what: str, done: int, total: int | None) -> None:
            if what == stage:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            import_text(
                header + "a.example,80,joe,2,2\nb.example,80,joe,1,1",
                update=True,
                sync=True,
                progress=interrupt,
            )
        assert [(row["host"], row["weight"], row["status"]) for row in rows()] == before

    def test_somebody_elses_proxy_in_between_is_not_overwritten(
        self, import_text: Import, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        apply = ImportPlan.apply

        def store_late(*args: Any) -> int:
            new(Proxy, host="b.example", port=80, notes="theirs")
            return apply(*args)

        monkeypatch.setattr(ImportPlan, "apply", store_late)
        with pytest.raises(ImportRefused, match="added by someone else meanwhile") as refused:
            import_text("a.example:80\nb.example:80")
        assert isinstance(refused.value.__cause__, IntegrityError)
        assert hosts() == ["b.example"]
        assert Proxy.objects.get().notes == "theirs"

    def test_a_lost_connection_is_not_taken_for_a_failure_or_a_success(
        self, import_text: Import, transactional_db: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lose_it(*_: Any) -> None:
            connection.close()
            raise InterfaceError(0, "lost")

        monkeypatch.setattr("resourcepool.db.retry.dialect.error_kind", lambda *args: ErrorKind.DISCONNECTED)
        monkeypatch.setattr(ProxyImporter, "insert", lose_it)
        with pytest.raises(DatabaseUnavailable, match="run the import again"):
            import_text("a.example:80")

    def test_one_that_was_deleted_in_between_is_entered_again(
        self, import_text: Import, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import_text(ALL + JOE)

        apply = ImportPlan.apply

        def store_late(*args: Any) -> int:
            Proxy.objects.all().delete()
            return apply(*args)

        monkeypatch.setattr(ImportPlan, "apply", store_late)
        import_text(ALL + JOE.replace("mine", "yours"), update=True)
        proxy = Proxy.objects.get()
        assert (proxy.url, proxy.notes) == ("http://joe:secret@a.example:80", "yours")
