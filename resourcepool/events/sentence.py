"""A sentence of the program: English text, localized when it is shown.

Logs, signals, errors and ``--json`` contain the English text, so that they can be searched and compared. Typed text is
an ordinary ``str`` and is shown unchanged.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from resourcepool.events.codes import TEMPLATES
from resourcepool.translation import gettext


class Sentence(str):
    """English text with its template and parameters::

        raise BadOption("queue", word, Sentence(_("at most %(count)s at once"), count=10_000))  # _ is gettext_noop

    Only a sentence with a code (``sentence_for``) can be read back from a row; others are stored as English text.

    Attributes:
        code: its key in ``TEMPLATES``; "": none.
        parameters: numbers, texts, other sentences, and tuples of these, which become lines.
    """

    __slots__ = ("code", "parameters", "template")

    template: str
    code: str
    parameters: Mapping[str, Any]

    def __new__(cls, template: str, code: str = "", /, **parameters: Any) -> "Sentence":
        """Make a sentence; ``parameters``: the values of the placeholders in ``template``."""
        self = super().__new__(cls, template % _formatted(parameters))
        self.template, self.code, self.parameters = template, code, parameters
        return self

    def __str__(self) -> str:
        return self  # so that str() of an exception with it is a Sentence, too

    def __getnewargs_ex__(self) -> tuple[tuple[str, str], Mapping[str, Any]]:
        return (self.template, self.code), self.parameters  # for pickling

    def replaced(self, others: Mapping[Any, Any]) -> "Sentence":
        """Return a copy with each parameter that is a key of ``others`` replaced by its value."""
        parameters = {name: others.get(value, value) for name, value in self.parameters.items()}
        return Sentence(self.template, self.code, **parameters)

    def localized(self) -> str:
        """Return the text in the active language."""
        return gettext(self.template) % _formatted(
            {name: _localized(value) for name, value in self.parameters.items()}
        )


def sentence_for(code: str, /, **parameters: Any) -> Sentence:
    """Return the sentence of ``code``, which can be stored; raises KeyError for an unknown code or parameter."""
    return Sentence(TEMPLATES[code], code, **parameters)


def joined(items: Sequence[str], code: str = "and_also") -> str:
    """Return the items as one sentence, joined by semicolons ("and_also") or commas ("and"); "" without items."""
    return (
        reduce(lambda rest, item: sentence_for(code, item=item, rest=rest), items[-2::-1], items[-1])
        if items
        else ""
    )


def localized(text: object) -> str:
    """Return a sentence, or an exception made with one, in the active language; other text unchanged."""
    full = str(text)
    return full.localized() if isinstance(full, Sentence) else full


def _localized(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_localized, value))
    return localized(value) if isinstance(value, str) else value


def _formatted(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _text(value) for name, value in parameters.items()}


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return "\n".join(f"  {line}" for line in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100_000 else f"{value:,g}"  # never 3.1536e+08
    return value
