"""A secret in a custom model: Django's admin pages accept it and never show it."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.forms import CharField, ModelForm, Textarea, modelform_factory
from django.test import Client
from django.urls import path

from resourcepool.admin import ResourceAdmin
from resourcepool.encryption.field import SecretField, SecretInput
from tests.app.models import Device, Login
from tests.app.rows import columns, new

SECRET, TYPED = "c4nary-s3cret", "  typed-0ne "
FORMS: dict[Any, dict[str, str]] = {
    Device: {"name": "a", "kind": "phone", "slots": "1", "weight": "1", "tags": "", "notes": ""},
    Login: {"name": "a", "notes": ""},
}
FIELD = {Device: "pin", Login: "secret"}


class LoginAdmin(admin.ModelAdmin):
    list_display = ("name", "secret")
    save_as = True


class LateLoginAdmin(LoginAdmin):
    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("secret")


class ListAdmin(admin.ModelAdmin):
    list_display = ("name", "secret")
    list_editable = ("secret",)


def site_of(name: str, login: Any) -> admin.AdminSite:
    site = admin.AdminSite(name=name)
    site.register(Login, login)
    site.register(Device, ResourceAdmin)
    return site


urlpatterns = [
    path("own/", site_of("own", LoginAdmin).urls),
    path("late/", site_of("late", LateLoginAdmin).urls),
    path("list/", site_of("list", ListAdmin).urls),
]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def row_of(model: Any) -> Any:
    return (
        new(Device, name="a", pin=SECRET) if model is Device else Login.objects.create(name="a", secret=SECRET)
    )


def page_of(row: Any, site: str = "own") -> str:
    return f"/{site}/testapp/{row._meta.model_name}/{row.pk}/change/"


def stored(row: Any) -> str:
    return str(getattr(type(row)._base_manager.get(pk=row.pk), FIELD[type(row)]))


def judged(answer: Any) -> str:
    body = str(answer.content.decode())
    assert answer.status_code in (200, 302)
    for text in (SECRET, TYPED.strip(), "sealed", "gAAAA"):
        assert text not in body
    return body


@pytest.mark.parametrize("site", ["own", "late"])
@pytest.mark.parametrize("model", FIELD)
class TestAForm:
    def test_shows_none_and_asks_the_browser_for_none(self, model: Any, site: str, client: Client) -> None:
        body = judged(client.get(page_of(row_of(model), site)))
        assert 'type="password"' in body
        assert 'autocomplete="new-password"' in body

    def test_left_empty_keeps_it(self, model: Any, site: str, client: Client) -> None:
        row = row_of(model)
        before = columns(row)[FIELD[model]].token
        for entered in ({}, {FIELD[model]: ""}):
            answer = client.post(page_of(row, site), {**FORMS[model], "notes": "b", **entered})
            assert answer.status_code == 302, answer.context["adminform"].form.errors
            assert (columns(row)["notes"], columns(row)[FIELD[model]].token) == ("b", before)
        assert stored(row) == SECRET

    def test_takes_the_entered_text_unchanged(self, model: Any, site: str, client: Client) -> None:
        row = row_of(model)
        for typed in (TYPED, f"sealed:{columns(row)[FIELD[model]].token}", "sealed:x", "<sealed>"):
            client.post(page_of(row, site), {**FORMS[model], FIELD[model]: typed})
            assert stored(row) == typed

    def test_with_an_error_shows_no_entered_secret(self, model: Any, site: str, client: Client) -> None:
        row = row_of(model)
        judged(client.post(page_of(row, site), {**FORMS[model], "name": "", FIELD[model]: TYPED}))
        assert stored(row) == SECRET

    def test_logs_that_it_was_entered_whether_or_not_it_differs(
        self, model: Any, site: str, client: Client
    ) -> None:
        row = row_of(model)
        for typed, noted in ((SECRET, True), (TYPED, True), ("", False)):
            client.post(page_of(row, site), {**FORMS[model], FIELD[model]: typed})
            history = client.get(page_of(row, site).replace("/change/", "/history/"))
            assert (f"Changed {FIELD[model].capitalize()}." in judged(history)) is noted or not noted
            said = admin.models.LogEntry.objects.order_by("-pk").first()
            assert bool(said and said.change_message != "[]") is noted

    def test_stays_usable_when_the_key_is_lost(
        self, model: Any, site: str, client: Client, settings: Any
    ) -> None:
        row = row_of(model)
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": [Fernet.generate_key().decode()]}
        client.post(page_of(row, site), {**FORMS[model], "notes": "b"})
        assert columns(row)["notes"] == "b"
        client.post(page_of(row, site), {**FORMS[model], FIELD[model]: TYPED})
        assert stored(row) == TYPED

    def test_without_a_key_says_so_at_the_field(
        self, model: Any, site: str, client: Client, settings: Any
    ) -> None:
        row = row_of(model)
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": []}
        said = judged(client.post(page_of(row, site), {**FORMS[model], FIELD[model]: TYPED}))
        assert "there is no key for secrets" in said


@pytest.mark.parametrize("model", FIELD)
def test_a_new_row_has_it(model: Any, client: Client) -> None:
    address = f"/own/testapp/{model._meta.model_name}/add/"
    answer = client.post(address, {**FORMS[model], FIELD[model]: TYPED})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert stored(model.objects.get()) == TYPED


def test_a_missing_required_secret_is_an_error(client: Client) -> None:
    assert "required" in judged(client.post("/own/testapp/login/add/", FORMS[Login]))
    assert "required" in judged(client.post("/own/testapp/login/add/?secret=x", FORMS[Login]))
    row = row_of(Login)  # a copy of a row needs the secret again
    assert "required" in judged(client.post(page_of(row), {**FORMS[Login], "_saveasnew": "1"}))
    assert Login.objects.count() == 1


@pytest.mark.parametrize("is_readable", [True, False])
@pytest.mark.parametrize("model", FIELD)
def test_viewers_see_no_secret(model: Any, is_readable: bool, settings: Any) -> None:
    row, client = row_of(model), Client()
    if not is_readable:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": [Fernet.generate_key().decode()]}
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename=f"view_{model._meta.model_name}"))
    client.force_login(user)
    judged(client.get(page_of(row)))
    if is_readable:
        judged(client.get(page_of(row).replace(f"{row.pk}/change/", "")))


def test_an_editable_list_shows_no_secret_and_accepts_one(client: Client) -> None:
    row = row_of(Login)
    judged(client.get("/own/testapp/login/"))
    judged(client.get("/list/testapp/login/"))
    page = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": row.pk, "_save": "Save"}
    client.post("/list/testapp/login/", {**page, "form-0-secret": ""})
    assert stored(row) == SECRET
    client.post("/list/testapp/login/", {**page, "form-0-secret": TYPED})
    assert stored(row) == TYPED


def test_a_custom_form_always_has_the_widget() -> None:
    wide = SecretInput(attrs={"class": "wide"})
    for widget, kind in ((Textarea, SecretInput), (Textarea(), SecretInput), (wide, SecretInput)):
        form: Any = modelform_factory(Login, ModelForm, fields=["secret"], widgets={"secret": widget})
        assert type(form().fields["secret"].widget) is kind
    assert isinstance(form().fields["secret"], CharField)
    assert 'class="wide"' in str(form()["secret"])


@pytest.mark.parametrize("site", ["own", "late"])
def test_the_bound_columns_change_only_together_with_the_secret(site: str, client: Client) -> None:
    row = row_of(Login)
    said = judged(client.post(page_of(row, site), {**FORMS[Login], "name": "b", "secret": ""}))
    assert "Enter it again: the stored value belongs to the fields as they were before" in said
    assert (columns(row)["name"], stored(row)) == ("a", SECRET)
    assert client.post(page_of(row, site), {**FORMS[Login], "name": "b", "secret": TYPED}).status_code == 302
    assert (columns(row)["name"], stored(row)) == ("b", TYPED)


def test_a_rule_of_the_model_is_kept_by_the_form(client: Client) -> None:
    row = row_of(Device)
    judged(client.post(page_of(row), {**FORMS[Device], "pin": TYPED + "x" * 500}))
    assert stored(row) == SECRET


@pytest.mark.parametrize("model", FIELD)
def test_validation_of_the_whole_row_keeps_the_secret(model: Any) -> None:
    row = model.objects.get(pk=row_of(model).pk)
    before = row.__dict__[FIELD[model]]
    row.full_clean()
    assert row.__dict__[FIELD[model]] is before


LOOKUPS = [
    *("", "__exact", "__iexact", "__contains", "__startswith", "__regex", "__in", "__gt", "__lte", "__range"),
]


@pytest.mark.parametrize("model", FIELD)
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_no_url_of_a_list_confirms_a_guess(model: Any, lookup: str, client: Client) -> None:
    row = row_of(model)
    address, token = page_of(row).replace(f"{row.pk}/change/", ""), columns(row)[FIELD[model]].token
    answers = set()
    for guess in (SECRET, "wr0ng", SECRET[:3], token, f"sealed:{token}"):
        answer = client.get(address, {f"{FIELD[model]}{lookup}": guess})
        rows = answer.context["cl"].result_count if answer.status_code == 200 else None
        answers.add((answer.status_code, rows))
    assert len(answers) == 1
    assert answers <= {(400, None), (302, None)}


def test_a_secret_that_is_too_long_is_refused_and_not_cut_by_the_browser() -> None:
    field = SecretField(max_length=20)
    assert "maxlength" not in field.widget.attrs
    with pytest.raises(ValidationError, match="at most 20 characters"):
        field.clean("x" * 30)
