"""The effect of an import on proxies in the database."""

from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from resourcepool.resources import import_plan, importer
from resourcepool.resources.import_plan import ImportPlan
from tests.app.rows import columns, granted, new
from tests.proxies.import_helpers import ALL, JOE, Import, hosts, numbers, rows

pytestmark = pytest.mark.django_db


class TestNewProxies:
    def test_get_every_value(self, import_text: Import) -> None:
        assert numbers(import_text(ALL + JOE)) == (1, 0, 0, 0)
        proxy = Proxy.objects.get()
        assert proxy.url == "http://joe:secret@a.example:80"
        assert (proxy.country, proxy.tags, proxy.weight, proxy.notes) == ("US", "eu fast", 7, "mine")

    def test_are_as_free_as_those_that_are_saved(self, import_text: Import) -> None:
        import_text("b.example:80")
        saved = Proxy.objects.create(host="c.example", port=80)
        own = {"id", "host", "fence"}
        imported, saved_row = (row for row in rows())
        assert {k: v for k, v in imported.items() if k not in own} == {
            k: v for k, v in saved_row.items() if k not in own
        }
        assert saved.pk == saved_row["id"]
        assert 0 < imported["fence"] < saved_row["fence"] + 1_000, "by the clock"
        assert hosts(pk__in=Proxy.objects.available()) == ["b.example", "c.example"]

    def test_have_their_password_encrypted(self, import_text: Import) -> None:
        import_text("joe:secret@a.example:80\njoe@b.example:80")
        with connection.cursor() as cursor:
            cursor.execute("SELECT password FROM resourcepool_proxy ORDER BY host")
            sealed, empty = (row[0] for row in cursor.fetchall())
        assert sealed.startswith("sealed:")
        assert "secret" not in sealed
        assert empty == ""

    def test_are_found_by_their_tags(self, import_text: Import) -> None:
        import_text(ALL + JOE)
        assert hosts(tags__contains="fast") == ["a.example"]

    @pytest.mark.parametrize("count", [import_plan.BATCH - 1, import_plan.BATCH, 2 * import_plan.BATCH + 1])
    def test_may_be_more_than_one_batch(self, import_text: Import, count: int) -> None:
        text = "".join(f"joe:{n}@p{n}.example:80\n" for n in range(count))
        assert numbers(import_text(text)) == (count, 0, 0, 0)
        assert numbers(import_text(text)) == (0, 0, count, 0)
        assert Proxy.objects.count() == count

    def test_need_a_key_only_for_passwords(self, import_text: Import) -> None:
        with override_settings(RESOURCEPOOL={}):
            assert numbers(import_text("joe@a.example:80")) == (1, 0, 0, 0)
            with pytest.raises(SecretUnreadable):
                import_text("joe:secret@b.example:80")
        assert hosts() == ["a.example"]


class TestAgain:
    def test_changes_nothing(self, import_text: Import) -> None:
        text = ALL + JOE + "https,b.example,81,,,,,,\n"
        import_text(text)
        before = rows()
        for options in ({}, {"update": True}, {"sync": True}, {"update": True, "sync": True}):
            done = import_text(text, **options)
            assert (numbers(done), done.differing) == ((0, 0, 2, 0), 0)
            assert [self.stored(row) for row in rows()] == [self.stored(row) for row in before]

    def stored(self, row: dict[str, Any]) -> dict[str, Any]:
        password = row["password"]
        return row | {"password": password and password.token}

    def test_adds_what_is_new(self, import_text: Import) -> None:
        import_text("a.example:80")
        assert numbers(import_text("b.example:80\na.example:80")) == (1, 0, 1, 0)
        assert hosts() == ["a.example", "b.example"]

    def test_without_update_leaves_other_values_and_says_so(self, import_text: Import) -> None:
        import_text(ALL + JOE)
        for changed in (JOE.replace("mine", "yours"), JOE.replace("secret", "other")):
            done = import_text(ALL + changed)
            assert (numbers(done), done.differing) == ((0, 0, 1, 0), 1)
        assert Proxy.objects.get().notes == "mine"
        assert Proxy.objects.get().password == "secret"

    def test_tells_proxies_apart_by_case_of_the_user_name(self, import_text: Import) -> None:
        import_text("joe@a.example:80")
        assert numbers(import_text("JOE@a.example:80")) == (1, 0, 0, 0)


class TestUpdate:
    @pytest.mark.parametrize(
        ("old", "other", "field", "value"),
        [
            (",secret,", ",other,", "password", "other"),
            (",us,", ",de,", "country", "DE"),
            (",us,", ",,", "country", ""),
            (",eu fast,", ",,", "tags", ""),
            (",eu fast,", ",slow,", "tags", "slow"),
            (",7,", ",,", "weight", 1),
            (",mine", ",", "notes", ""),
        ],
    )
    def test_takes_the_value_of_the_file(
        self, import_text: Import, old: str, other: str, field: str, value: object
    ) -> None:
        import_text(ALL + JOE)
        pk = Proxy.objects.get().pk
        assert numbers(import_text(ALL + JOE.replace(old, other), update=True)) == (0, 1, 0, 0)
        proxy = Proxy.objects.get()
        assert (proxy.pk, getattr(proxy, field)) == (pk, value)
        for name, kept in (("password", "secret"), ("country", "US"), ("tags", "eu fast"), ("weight", 7)):
            assert name == field or getattr(proxy, name) == kept

    def test_leaves_the_columns_alone_that_the_file_does_not_have(self, import_text: Import) -> None:
        import_text(ALL + JOE)
        done = import_text("host,port,username,weight\na.example,80,joe,8", update=True)
        assert numbers(done) == (0, 1, 0, 0)
        proxy = Proxy.objects.get()
        assert (proxy.weight, proxy.password, proxy.country, proxy.notes) == (8, "secret", "US", "mine")
        assert numbers(import_text("joe:other@a.example:80", update=True)) == (0, 1, 0, 0)
        proxy = Proxy.objects.get()
        assert (proxy.weight, proxy.password, proxy.country, proxy.notes) == (8, "other", "US", "mine")

    @pytest.mark.parametrize("text", [ALL + JOE.replace("secret", ""), "joe@a.example:80", "joe:@a.example:80"])
    def test_an_empty_password_leaves_the_stored_one(self, import_text: Import, text: str) -> None:
        import_text(ALL + JOE)
        assert numbers(import_text(text, update=True)) == (0, 0, 1, 0)
        assert Proxy.objects.get().password == "secret"

    def test_writes_only_what_has_changed(self, import_text: Import) -> None:
        import_text(ALL + JOE + JOE.replace("joe", "ann"))
        ann = Proxy.objects.get(username="ann")
        before = columns(ann)["password"].token
        done = import_text(ALL + JOE + JOE.replace("joe", "ann").replace("mine", "hers"), update=True)
        assert numbers(done) == (0, 1, 1, 0)
        assert columns(ann)["notes"] == "hers"
        assert columns(ann)["password"].token == before

    def test_brings_a_password_back_whose_key_was_lost(self, import_text: Import) -> None:
        import_text(ALL + JOE)
        from cryptography.fernet import Fernet

        with override_settings(RESOURCEPOOL={"SECRET_KEYS": [Fernet.generate_key().decode()]}):
            with pytest.raises(SecretUnreadable):
                assert Proxy.objects.get().password
            assert numbers(import_text(ALL + JOE, update=True)) == (0, 1, 0, 0)
            assert Proxy.objects.get().password == "secret"

    def test_does_not_touch_the_lease_or_the_state(self, import_text: Import) -> None:
        held, out = new(Proxy, host="a.example", port=80), new(Proxy, host="b.example", port=80)
        granted(held)
        Proxy.objects.filter(pk=out.pk).drain("broken")
        before = [columns(held), columns(out)]
        done = import_text("host,port,weight\na.example,80,9\nb.example,80,9", update=True)
        assert numbers(done) == (0, 2, 0, 0)
        assert [columns(held), columns(out)] == [row | {"weight": 9} for row in before]

    def test_may_be_more_than_one_batch(self, import_text: Import) -> None:
        text = "".join(f"p{n}.example,80,joe,secret,{{}}\n" for n in range(2 * import_plan.BATCH + 1))
        header = "host,port,username,password,weight\n"
        import_text(header + text.replace("{}", "1"))
        changed = header + text.replace("{}", "2")
        assert import_text(changed, update=True).changed == 2 * import_plan.BATCH + 1
        assert numbers(import_text(changed, update=True)) == (0, 0, 2 * import_plan.BATCH + 1, 0)
        assert set(Proxy.objects.values_list("weight", flat=True)) == {2}


class TestSync:
    def test_retires_what_is_not_in_the_file(self, import_text: Import) -> None:
        import_text("a.example:80\nb.example:80")
        assert numbers(import_text("b.example:80\nc.example:80", sync=True)) == (1, 0, 1, 1)
        gone = Proxy.objects.get(host="a.example")
        assert (gone.in_service, gone.status, gone.reason) == (False, "retired", "not in proxies.csv")
        assert hosts(in_service=True) == ["b.example", "c.example"]

    def test_does_not_count_those_again_that_are_retired(self, import_text: Import) -> None:
        import_text("a.example:80\nb.example:80")
        import_text("b.example:80", sync=True)
        Proxy.objects.filter(host="a.example").update(reason="kept")
        for dry_run in (True, False):
            assert numbers(import_text("b.example:80", sync=True, dry_run=dry_run)) == (0, 0, 1, 0)
        assert Proxy.objects.get(host="a.example").reason == "kept"

    def test_returns_those_that_are_back(self, import_text: Import) -> None:
        import_text("a.example:80\nb.example:80")
        import_text("b.example:80", sync=True)
        done = import_text("a.example:80\nb.example:80", sync=True)
        assert (numbers(done), done.returned) == ((0, 1, 1, 0), 1)
        back = Proxy.objects.get(host="a.example")
        assert (back.in_service, back.status, back.reason) == (True, "in_service", "")

    def test_without_it_a_retired_one_stays_so_and_is_counted(self, import_text: Import) -> None:
        import_text("a.example:80\nb.example:80")
        import_text("b.example:80", sync=True)
        done = import_text("a.example:80\nb.example:80", update=True)
        assert (numbers(done), done.staying_retired) == ((0, 0, 2, 0), 1)
        assert hosts(in_service=False) == ["a.example"]

    def test_leaves_those_out_of_service_that_an_operator_took_out(self, import_text: Import) -> None:
        import_text("a.example:80")
        Proxy.objects.all().drain("broken")
        assert numbers(import_text("a.example:80", sync=True)) == (0, 0, 1, 0)
        assert Proxy.objects.get().status == "out_of_service"

    def test_a_held_one_is_retired_and_its_holder_keeps_it(self, import_text: Import) -> None:
        proxy = new(Proxy, host="a.example", port=80)
        granted(proxy)
        before = columns(proxy)
        assert import_text("b.example:80", sync=True).retired == 1
        after = columns(proxy)
        assert {name for name in after if after[name] != before[name]} == {"in_service", "status", "reason"}
        assert list(Proxy.objects.draining()) == [proxy]

    def test_an_exact_copy_of_a_line_is_counted_and_does_not_keep_it_from_retiring(
        self, import_text: Import
    ) -> None:
        import_text("a.example:80\nb.example:80")
        done = import_text("b.example:80\nb.example:80", sync=True)
        assert (numbers(done), done.repeated) == ((0, 0, 1, 1), 1)

    def test_retires_nothing_while_lines_are_skipped(self, import_text: Import) -> None:
        import_text("a.example:80\nb.example:80\nc.example:80")
        Proxy.objects.filter(host="c.example").retire("old")
        done = import_text("b.example:80\na.example:0\nc.example:80", sync=True, skip_bad=True)
        assert (numbers(done), done.returned, done.bad_count) == ((0, 1, 1, 0), 1, 1)
        assert hosts(in_service=True) == ["a.example", "b.example", "c.example"]

    def test_leaves_those_alone_whose_state_has_changed_in_between(
        self, import_text: Import, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import_text("a.example:80\nb.example:80")
        Proxy.objects.filter(host="a.example").retire("old")

        apply = ImportPlan.apply

        def store_late(*args: Any) -> int:
            Proxy.objects.filter(host="a.example").drain("broken")
            Proxy.objects.filter(host="b.example").retire("sold")
            return apply(*args)

        monkeypatch.setattr(ImportPlan, "apply", store_late)
        assert import_text("a.example:80", sync=True).retired == 0
        assert sorted(Proxy.objects.values_list("host", "reason")) == [
            ("a.example", "broken"),
            ("b.example", "sold"),
        ]

    def test_may_be_more_than_one_batch(self, import_text: Import) -> None:
        text = "".join(f"p{n}.example:80\n" for n in range(2 * import_plan.BATCH + 1))
        import_text(text)
        assert import_text("a.example:80", sync=True).retired == 2 * import_plan.BATCH + 1
        done = import_text(text, sync=True)
        assert (numbers(done), done.returned) == ((0, 1_001, 0, 1), 1_001)
        assert hosts(in_service=False) == ["a.example"]


def test_existing_proxies_are_read_in_one_pass(import_text: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "CHUNK", 10)
    text = "".join(f"p{n}.example:80\n" for n in range(25))
    import_text(text)
    with CaptureQueriesContext(connection) as queries:
        assert numbers(import_text(text)) == (0, 0, 25, 0)
    read = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert len(read) == 3
    assert len(queries) - len(read) <= 2  # a savepoint


@pytest.mark.only("mysql")
def test_many_new_proxies_are_written_by_one_statement(import_text: Import) -> None:
    """MySQL's driver sends one statement per row unless it can batch them."""

    def inserts() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Com_insert'")
            return int(cursor.fetchone()[1])

    before = inserts()
    import_text("".join(f"p{n}.example:80\n" for n in range(25)))
    assert Proxy.objects.count() == 25
    assert inserts() - before <= 3  # the proxies, and the history
