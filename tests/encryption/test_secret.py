"""A secret that is encrypted for one purpose cannot be decrypted for another."""

from typing import Any

import pytest
from cryptography.fernet import Fernet

from resourcepool.encryption.secret import encrypt
from resourcepool.exceptions import SecretUnreadable

SECRET = "c4nary-s3cret"
FOR = ("column", "app.Model.field", "1")
OTHERS = [
    ("column",),
    ("column", "app.Model.field"),
    ("column", "app.Model.field", "2"),
    ("column", "app.Model.field", "1", ""),
    ("column", "app.Model.field1"),
    ("column", 'app.Model.field", "1'),
    ("app.Model.field", "column", "1"),
]


@pytest.mark.parametrize("other", OTHERS)
def test_not_for_another_purpose_in_either_direction(other: Any) -> None:
    for rebound_to, opened_for in ((FOR, other), (other, FOR)):
        with pytest.raises(SecretUnreadable, match="or the secret was copied from another row"):
            encrypt(SECRET, rebound_to).open(opened_for)


def test_several_purposes_are_tried() -> None:
    assert encrypt(SECRET, FOR).open(*OTHERS, FOR) == SECRET


def test_is_reencrypted_only_for_another_purpose() -> None:
    sealed = encrypt(SECRET, OTHERS[0])
    bound = sealed.rebound_to(FOR, OTHERS[0])
    assert bound.open(FOR) == SECRET
    assert bound.rebound_to(FOR, OTHERS[0]) is bound
    assert bound.rebound_to(("elsewhere",), OTHERS[0]) is bound


@pytest.mark.parametrize("secret", ["", "\ud800", "half \udfff", "\0", "ä" * 5_000, "\U0001f600"])
def test_any_text_is_a_secret(secret: str) -> None:
    assert encrypt(secret, FOR).open(FOR) == secret


def test_every_key_decrypts_it(settings: Any) -> None:
    old, fresh = (Fernet.generate_key().decode() for _ in range(2))
    settings.RESOURCEPOOL = {"SECRET_KEYS": [old]}
    sealed = encrypt(SECRET, FOR)
    settings.RESOURCEPOOL = {"SECRET_KEYS": (fresh, old.encode())}
    assert sealed.open(FOR) == SECRET
