"""``make messages``: collects the texts of the package for its translators, and compiles what is translated.

Needs xgettext, msgmerge and msgfmt (Debian: gettext). What it makes is committed: users need none of them.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from resourcepool.translation import CONTEXT
from tests.spawned import ROOT

LANGUAGES = ("zh_Hans",)
PACKAGE = Path(ROOT) / "resourcepool"
PROGRAMS = ("xgettext", "msgmerge", "msguniq", "msgattrib", "msgfmt")

Texts = dict[tuple[str, str], list[str]]
"""{(msgid, msgid_plural or ""): the translations, one for each plural form}."""


def missing_programs() -> list[str]:
    """Return which of the programs that are needed are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def catalogue(language: str, package: Path = PACKAGE) -> Path:
    """Return where the texts in this language are."""
    return package / "locale" / language / "LC_MESSAGES" / "django.po"


def collect(package: Path) -> None:
    """Bring the catalogues below ``package`` up to date with its code and templates."""
    template = package / "locale" / "django.pot"
    # All languages are left out, so that only the template is made: its texts have no context yet.
    languages = [f"--exclude={language}" for language in LANGUAGES]
    _admin(package, "makemessages", *languages, "--keep-pot", "--add-location=file", "--no-wrap")
    template.write_text("\n\n".join(_in_context(template.read_text().split("\n\n"))))
    _run("msguniq", "--no-wrap", "--no-location", "-o", template, template)
    for language in LANGUAGES:
        path = catalogue(language, package)
        if not path.exists():
            path.parent.mkdir(parents=True)
            shutil.copy(template, path)
        _run("msgmerge", "--quiet", "--update", "--backup=none", "--no-wrap", "--no-location", path, template)
        _run("msgattrib", "--no-obsolete", "--no-wrap", "-o", path, path)
        # No dates: they would change with every edit of anything.
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith('"POT-Creation-Date')))
    template.unlink()


def _in_context(blocks: list[str]) -> Iterator[str]:
    """Give the texts of the code their context; texts of templates without one are Django's own, and left out."""
    for block in blocks:
        if "msgctxt" in block or "Content-Type" in block:
            yield block
        elif re.search(r"^#:.*\.py\b", block, re.MULTILINE):
            yield re.sub(r"^msgid ", f'msgctxt "{CONTEXT}"\nmsgid ', block, count=1, flags=re.MULTILINE)


def compile_all(package: Path) -> None:
    """Compile the catalogues below ``package``."""
    _admin(package, "compilemessages", *(f"--locale={language}" for language in LANGUAGES))


def texts_of(po: Path) -> Texts:
    """Return what a catalogue has, its head ("") included; raises ValueError where a text is marked as fuzzy."""
    found: Texts = {}
    for block in po.read_text().split("\n\n"):
        fields = _fields(block)
        if "msgid" in fields:
            if fields["msgid"] and fields.get("msgctxt") != CONTEXT:
                raise ValueError(f"without the context {CONTEXT!r}: {block}")
            if fields["msgid"] and re.search(r"^#,.*fuzzy", block, re.MULTILINE):
                raise ValueError(f"fuzzy: {block}")
            forms = [text for name, text in fields.items() if name.startswith("msgstr")]
            found[fields["msgid"], fields.get("msgid_plural", "")] = forms
    return found


def _fields(block: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        if line and not line.startswith("#"):
            begins, _, text = line.partition('"')
            name = begins.strip() or name
            fields[name] = fields.get(name, "") + ast.literal_eval(f'"{text}')
    return fields


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def _admin(package: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "django", *arguments, "--verbosity=0"], cwd=package, check=True)


def main() -> None:
    """Do it, and say what is left to translate."""
    if lacking := missing_programs():
        sys.exit(f"Not found: {', '.join(lacking)}. On Debian or Ubuntu: apt-get install gettext")
    collect(PACKAGE)
    compile_all(PACKAGE)
    for language in LANGUAGES:
        subprocess.run(
            ["msgfmt", "--statistics", "--check", "-o", "/dev/null", catalogue(language)], check=True
        )


if __name__ == "__main__":
    main()
