"""A sentence of the program: English as a text, and in the reader's language where it is shown.

Logs, signals, errors and ``--json`` have the English text, so that they can be searched and compared. Text that people
typed is an ordinary ``str``, and is shown unchanged.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from django.utils.translation import gettext

from resourcepool.events.codes import TEMPLATES


class Sentence(str):
    """English text with its template and parameters::

        raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=10_000))  # _ is gettext_noop

    Only a sentence with a code (``sentence_for``) can be read back from a row; others are stored as English text.

    Attributes:
        code: its key in ``TEMPLATES``; "": it has none.
        parameters: numbers, texts, other sentences, and tuples of these, which become lines.
    """

    __slots__ = ("code", "parameters", "template")

    template: str
    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, template: str, code: str = "", /, **parameters: Any) -> "Sentence":
        """Make one; the ``parameters`` are those that ``template`` names."""
        self = super().__new__(cls, template % _spelled(parameters))
        self.template, self.code, self.parameters = template, code, parameters
        return self

    def __str__(self) -> str:
        return self  # so str() of an error made with it is a sentence, too

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], Mapping[str, Any]]:
        return (self.template, self.code), self.parameters  # for pickling

    def replaced(self, others: Mapping[Any, Any]) -> "Sentence":
        """Return it with the parameters that are keys of ``others`` replaced by the values."""
        found = {name: others.get(value, value) for name, value in self.parameters.items()}
        return Sentence(self.template, self.code, **found)

    def localized(self) -> str:
        """Return it in the active language."""
        return gettext(self.template) % _spelled({name: _shown(one) for name, one in self.parameters.items()})


def sentence_for(code: str, /, **parameters: Any) -> Sentence:
    """Return the sentence of this code, which may be stored; raises KeyError for an unknown code or parameter."""
    return Sentence(TEMPLATES[code], code, **parameters)


def joined(items: Sequence[str], code: str = "and_also") -> str:
    """Return these as one sentence, joined by semicolons ("and_also") or commas ("and"); "" if there are none."""
    return (
        reduce(lambda rest, item: sentence_for(code, item=item, rest=rest), items[-2::-1], items[-1])
        if items
        else ""
    )


def localized(text: object) -> str:
    """Return a sentence, or an error made with one, in the active language; other text unchanged."""
    said = str(text)
    return said.localized() if isinstance(said, Sentence) else said


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    return localized(value) if isinstance(value, str) else value


def _spelled(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text(value) for name, value in parameters.items()}


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return "\n".join(f"  {line}" for line in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,g}"  # never 3.1536e+08
    return value
