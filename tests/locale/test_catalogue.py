"""The translations are complete, compiled, and match the texts of the code."""

import ast
import gettext
import re
import shutil
from pathlib import Path

import pytest

from resourcepool.translation import CONTEXT
from tests.messages import LANGUAGES, PACKAGE, catalogue, collect, missing_programs, texts_of

PLACES = re.compile(r"%(?:\((\w+)\))?[#0 +.\d-]*[sdrf]|\{(\w*)\}")

lacking = missing_programs()


def places(text: str) -> list[str]:
    """Return the placeholders of a text: named ones sorted, others in their order."""
    found = [match[0] for match in PLACES.finditer(text.replace("%%", ""))]
    return sorted(found) if all("(" in place or "{" in place for place in found) else found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    texts = texts_of(catalogue(language))
    assert len(texts) > 400
    assert not [text for (text, _plural), forms in texts.items() if not all(forms)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_the_places_of_its_text(language: str) -> None:
    for (text, plural), forms in texts_of(catalogue(language)).items():
        for form in forms if text else ():
            assert places(form) == places(plural or text), text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_keeps_the_blanks_and_backticks_of_its_text(language: str) -> None:
    for (text, _plural), forms in texts_of(catalogue(language)).items():
        for form in forms if text else ():
            assert len(form) - len(form.lstrip()) == len(text) - len(text.lstrip()), text
            assert re.findall(r"`[^`]+`", form) == re.findall(r"`[^`]+`", text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_installed_is_what_is_translated(language: str) -> None:
    path = catalogue(language)
    with path.with_suffix(".mo").open("rb") as compiled:
        known = gettext.GNUTranslations(compiled)
    for (text, plural), forms in texts_of(path).items():
        if not text:
            continue
        said = known.npgettext(CONTEXT, text, plural, 1) if plural else known.pgettext(CONTEXT, text)
        assert said == forms[0], f"{text!r}: run make messages"


@pytest.mark.skipif(bool(lacking), reason=f"needs Debian's gettext: {', '.join(lacking)} not found")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_catalogue_has_the_texts_of_the_code_and_no_others(language: str, tmp_path: Path) -> None:
    package = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "locale"))
    (package / "locale").mkdir()
    collect(package)
    there, wanted = (set(texts_of(catalogue(language, where))) - {("", "")} for where in (PACKAGE, package))
    assert there == wanted, "run make messages, and translate what is new"


def test_no_text_hides_where_xgettext_does_not_look() -> None:
    names = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
    for path in PACKAGE.rglob("*.py"):
        for string in (
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.JoinedStr)
        ):
            for node in ast.walk(string):
                is_marked = isinstance(node, ast.Call) and getattr(node.func, "id", "") in names
                assert not is_marked or isinstance(node.args[0], ast.Name), f"{path}:{string.lineno}"


def test_what_is_fuzzy_is_refused(tmp_path: Path) -> None:
    po = tmp_path / "x.po"
    po.write_text('#, fuzzy, python-format\nmsgid "a %d"\nmsgstr "b %d"\n')
    with pytest.raises(ValueError, match="fuzzy"):
        texts_of(po)
