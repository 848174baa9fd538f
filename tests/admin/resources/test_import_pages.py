"""Import of proxies from an uploaded file: first the plan, then all or nothing."""

import json
import re
import secrets
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from resourcepool.admin.resources import import_pages
from resourcepool.admin.resources.import_pages import pack, unpack
from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.exceptions import SecretUnreadable
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind
from tests.admin.conftest import lease, sign_in, text
from tests.app.rows import columns, new

URL = "/admin/resourcepool/proxy/import/"
SECRET = "c4nary-s3cret"
LIST = f"http://joe:{SECRET}@a.example:80\nhttp://b.example:81\n"

pytestmark = pytest.mark.django_db


def upload(client: Client, content: str | bytes, **choices: str) -> Any:
    body = content.encode() if isinstance(content, str) else content
    return client.post(URL, {"file": SimpleUploadedFile("proxies.txt", body), **choices})


def sealed(answer: Any) -> str:
    assert answer.status_code == 200
    token: str = answer.context["sealed"]
    return token


def confirm(client: Client, answer: Any) -> str:
    return text(client.post(URL, {"sealed": sealed(answer)}, follow=True))


def test_the_plan_shows_what_happens_with_each_row(administrator: Client) -> None:
    old = new(Proxy, host="a.example", port=80, username="joe", country="US")
    known = new(Proxy, host="c.example", port=80, username="", country="US", password=SECRET)
    csv = (
        f"host,port,username,country,password\na.example,80,,DE,\nb.example,81,,,\nc.example,80,,DE,{SECRET}\n"
    )
    rows = upload(administrator, csv, update="on").context["plan"].rows
    assert [(row.line, row.what, row.name) for row in rows] == [
        (2, "new", "http://a.example:80"),
        (3, "new", "http://b.example:81"),
        (4, "changed", "http://:***@c.example:80"),
    ]
    assert rows[0].note == f"looks like proxy {old.pk} (http://joe@..), with another scheme or user name"
    assert rows[1].note == ""
    assert rows[2].changes == (("password", "***", "***"), ("country", "US", "DE"))
    page = text(upload(administrator, csv))
    assert "differs in country; left unchanged" in page
    assert SECRET not in page
    assert columns(known)["country"] == "US"


@pytest.mark.parametrize(
    "sent", [{}, {"text": "  "}, {"text": LIST, "file": SimpleUploadedFile("a", LIST.encode())}]
)
def test_either_a_text_or_a_file_is_needed(administrator: Client, sent: dict[str, Any]) -> None:
    assert administrator.post(URL, sent).context["form"].errors["file"]


@pytest.mark.parametrize("name", ["Proxies.txt", "Pasted text"])
def test_the_plan_is_shown_and_runs_after_confirmation(administrator: Client, name: str) -> None:
    planned = upload(administrator, LIST) if "txt" in name else administrator.post(URL, {"text": LIST})
    assert "Would import 2 proxies: 2 new, 0 changed, 0 unchanged, 0 retired." in text(planned)
    assert SECRET not in text(planned)
    assert not Proxy.objects.exists()
    page = confirm(administrator, planned)
    assert f"{name}: Imported 2 proxies: 2 new" in page
    assert SECRET not in page
    assert Proxy.objects.get(host="a.example").password == SECRET


def test_updating_and_retiring_are_options() -> None:
    client = sign_in("superuser")
    old, known = new(Proxy), new(Proxy, host="a.example", port=80, username="joe")
    lease(old)
    csv = "host,port,username,country\na.example,80,joe,DE\n"
    page = confirm(client, upload(client, csv))
    assert "1 existing row differs from the file and is left unchanged" in page
    assert columns(known)["country"] == ""
    page = confirm(client, upload(client, csv, update="on", sync="on"))
    assert "0 new, 1 changed, 0 unchanged, 1 retired" in page
    assert columns(known)["country"] == "DE"
    assert (columns(old)["in_service"], columns(old)["holder"]) == (False, old.holder)


def test_the_import_is_logged_with_its_user(administrator: Client) -> None:
    confirm(administrator, upload(administrator, LIST))
    entry = LogEntry.objects.get()
    assert (entry.user.get_username(), entry.object_id) == ("administrator", None)
    assert entry.object_repr == "import of proxies.txt"
    assert "Imported 2 proxies: 2 new" in entry.change_message
    assert SECRET not in str(LogEntry.objects.values())
    assert "import of proxies.txt" in text(administrator.get("/admin/"))


@pytest.mark.django_db(transaction=True)
def test_the_history_names_the_user_of_an_import() -> None:
    old, back = new(Proxy), new(Proxy, host="a.example", port=80, username="joe")
    Proxy.objects.filter(pk=back.pk).retire()
    client = sign_in("superuser")
    with override_settings(RESOURCEPOOL={**settings.RESOURCEPOOL, "HISTORY": True}):
        confirm(client, upload(client, LIST, sync="on"))
        recorder.flush()
    events = Event.objects.order_by("what").values_list("what", "row", "actor")
    assert list(events) == [
        (EventKind.DRAINED, str(old.pk), "superuser"),
        (EventKind.RETURNED, str(back.pk), "superuser"),
    ]


def test_a_bad_line_is_named_with_its_field_and_nothing_is_imported(administrator: Client) -> None:
    bad = f"http://a.example:80\nhttp://joe:{SECRET}@b.example:99999\n<b>\n"
    page = text(upload(administrator, bad))
    assert "<td>2</td>" in page
    assert "port: not a whole number" in page
    assert "Nothing can be imported yet" in page
    assert SECRET not in page
    assert "<b>" not in page
    assert not Proxy.objects.exists()
    page = text(answer := upload(administrator, bad, skip_bad="on"))
    assert "2 bad lines skipped." in page
    assert SECRET not in page
    confirm(administrator, answer)
    assert Proxy.objects.count() == 1


def test_the_name_of_the_file_may_be_anything() -> None:
    client = sign_in("superuser")
    new(Proxy)
    file = SimpleUploadedFile("a\x07\u202e<b>" + "n" * 90 + ".txt", LIST.encode())
    answer = client.post(URL, {"file": file, "sync": "on"})
    assert "<b>" not in text(answer)
    assert "1 retired" in confirm(client, answer)
    assert Proxy.objects.filter(reason__code="not_in_file").exists()


@pytest.mark.parametrize("content", [b"", b"\0\1", b"\xff\xfea", b"\xff", b"host,port\n", b"nonsense\n"])
def test_a_file_that_is_no_list_is_refused_at_its_field(administrator: Client, content: bytes) -> None:
    answer = upload(administrator, content)
    assert answer.context["form"].errors["file"]


def test_a_file_that_is_too_large_is_refused(administrator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_pages, "MAX_FILE_BYTES", 10)
    assert "At most 1 MB" in text(upload(administrator, LIST))


def test_the_largest_file_fits_into_the_form(administrator: Client) -> None:
    # Passwords do not compress, and few long ones import faster than many short ones.
    line = "http://user{0}:{1}@host{0}.example:8{2:03}\n"
    lines, size, number = [], 0, 0
    while size < import_pages.MAX_FILE_BYTES - 1_100:
        number += 1
        one = line.format(number, secrets.token_urlsafe(750), number % 1000)
        lines.append(one)
        size += len(one)
    answer = upload(administrator, "".join(lines))
    assert len(sealed(answer)) > import_pages.MAX_FILE_BYTES
    assert f"{number} new" in confirm(administrator, answer)


def test_a_plan_is_valid_for_its_user_and_for_an_hour(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = upload(administrator, LIST)
    page = text(sign_in("superuser").post(URL, {"sealed": sealed(answer)}, follow=True))
    assert "another user" in page
    monkeypatch.setattr(import_pages, "PLAN_SECONDS", -1)
    assert "more than an hour old" in confirm(administrator, answer)
    assert not Proxy.objects.exists()


@pytest.mark.parametrize("token", ["", "x", "gAAAAA", "\0", "ü" * 100])
def test_a_modified_plan_is_refused(administrator: Client, token: str) -> None:
    answer = administrator.post(URL, {"sealed": token}, follow=True)
    assert "errorlist" in text(answer) or "messagelist" in text(answer)
    assert not Proxy.objects.exists()


def test_a_packed_plan_reveals_nothing_and_unpacks() -> None:
    wanted = {"update": True, "sync": False, "skip_bad": False}
    token = pack(LIST.encode(), "proxies.txt", wanted, 7)
    assert SECRET not in token
    assert unpack(token, 7) == (LIST.encode(), "proxies.txt", wanted)
    with pytest.raises(SecretUnreadable):
        unpack(token, 8)


@pytest.mark.parametrize("choices", [{}, {"update": "on"}])
def test_neither_plan_nor_import_confirms_a_guess_of_a_password(
    administrator: Client, choices: dict[str, str]
) -> None:
    proxy, pages, said = new(Proxy, host="a.example", port=80, username="joe", password=SECRET), [], []
    for guess in (SECRET, "wr0ng-guess"):
        answer = upload(administrator, f"http://joe:{guess}@a.example:80\n", **choices)
        pages.append(re.sub(r"csrfmiddlewaretoken.*?>", "", text(answer).replace(sealed(answer), "")))
    for guess in ("wr0ng-guess", SECRET):
        confirm(administrator, upload(administrator, f"http://joe:{guess}@a.example:80\n", **choices))
        said.append(LogEntry.objects.latest("pk").change_message)
    assert pages[0] == pages[1]
    assert ("1 changed" in pages[0]) is bool(choices)
    assert said[0] == said[1]
    assert Proxy.objects.get(pk=proxy.pk).password == SECRET


def test_different_values_are_still_reported(administrator: Client) -> None:
    new(Proxy, host="a.example", port=80, username="joe", password=SECRET)
    csv = f"host,port,username,password,country\na.example,80,joe,{SECRET},DE\n"
    page = text(upload(administrator, csv))
    assert "1 existing row differs from the file and is left unchanged" in page
    assert "1 unchanged row has a secret in the file; it is not compared with the stored one." in page
    assert "a secret in the file" not in text(upload(administrator, csv.replace(SECRET, "")))


@pytest.mark.parametrize("purpose", [("column", "resourcepool.Proxy.password"), ("tried",)])
def test_a_secret_of_another_purpose_is_no_plan(administrator: Client, purpose: Any) -> None:
    for secret in (SECRET, json.dumps({"user": "1"}), "[]", "7"):
        token = encrypt(secret, purpose).token
        page = text(administrator.post(URL, {"sealed": token}, follow=True))
        assert " key in RESOURCEPOOL" in page
        assert SECRET not in page


def test_a_plan_is_no_password(administrator: Client) -> None:
    new(Proxy, host="a.example", port=80, username="joe")
    Proxy.objects.update(password=EncryptedSecret(sealed(upload(administrator, LIST))))
    with pytest.raises(SecretUnreadable):
        _ = Proxy.objects.get().password


def test_without_a_key_it_says_so(administrator: Client) -> None:
    with override_settings(RESOURCEPOOL={}):
        page = text(upload(administrator, LIST))
    assert "there is no key for secrets" in page
    assert SECRET not in page
