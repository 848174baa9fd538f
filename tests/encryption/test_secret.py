"""What is sealed for one purpose opens for no other."""

from typing import Any

import pytest
from cryptography.fernet import Fernet

from resourcepool.encryption.secret import ANY_PURPOSE, EncryptedSecret, encrypt
from resourcepool.exceptions import SecretUnreadable

SECRET = "c4nary-s3cret"
FOR = ("column", "app.Model.field", "1")
OTHERS = [
    ANY_PURPOSE,
    ("column",),
    ("column", "app.Model.field"),
    ("column", "app.Model.field", "2"),
    ("column", "app.Model.field", "1", ""),
    ("column", "app.Model.field1"),
    ("column", 'app.Model.field", "1'),
    ("app.Model.field", "column", "1"),
]


@pytest.mark.parametrize("other", OTHERS)
def test_neither_one_way_nor_the_other(other: Any) -> None:
    for rebound_to, opened_for in ((FOR, other), (other, FOR)):
        with pytest.raises(SecretUnreadable, match="was it stored for another row"):
            encrypt(SECRET, rebound_to).open(opened_for)


def test_several_are_tried() -> None:
    assert encrypt(SECRET, FOR).open(*OTHERS, FOR) == SECRET


def test_what_was_sealed_before_there_were_purposes_opens_for_any_alone(settings: Any) -> None:
    old = EncryptedSecret(Fernet(settings.RESOURCEPOOL["SECRET_KEYS"][0]).encrypt(SECRET.encode()).decode())
    assert old.open(ANY_PURPOSE) == SECRET
    with pytest.raises(SecretUnreadable):
        old.open(FOR)


def test_it_is_sealed_anew_only_for_another_purpose() -> None:
    sealed = encrypt(SECRET, ANY_PURPOSE)
    anew = sealed.rebound_to(FOR, ANY_PURPOSE)
    assert anew.open(FOR) == SECRET
    assert anew.rebound_to(FOR, ANY_PURPOSE) is anew
    assert anew.rebound_to(("elsewhere",), ANY_PURPOSE) is anew


@pytest.mark.parametrize("secret", ["", "\ud800", "half \udfff", "\0", "ä" * 5_000, "\U0001f600"])
def test_any_text_is_a_secret(secret: str) -> None:
    assert encrypt(secret, FOR).open(FOR) == secret


def test_each_key_opens_it(settings: Any) -> None:
    old, fresh = (Fernet.generate_key().decode() for _ in range(2))
    settings.RESOURCEPOOL = {"SECRET_KEYS": [old]}
    sealed = encrypt(SECRET, FOR)
    settings.RESOURCEPOOL = {"SECRET_KEYS": (fresh, old.encode())}
    assert sealed.open(FOR) == SECRET
