"""docs/internals/origins.md explains every requirement number in use, and all its paths and names exist."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from django.apps import apps

from tests.spawned import ROOT

HOUSE = Path(ROOT)
PAGE = HOUSE / "docs" / "internals" / "origins.md"
NUMBER = re.compile(r"\bR\d\.\d+\b")
ENTRY = re.compile(r"^- \*\*(R\d\.\d+)\*\*(.*?)(?=^- \*\*|^#|\Z)", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r"`((?:resourcepool|tests|docs|examples|benchmarks)/[^`]+)`")
FOLDERS = ("resourcepool", "tests", "docs", "examples", "benchmarks", "project", "templates")
TEXT = {".py", ".md", ".html", ".js", ".css", ".po", ".toml"}


def test_every_number_that_is_mentioned_is_explained() -> None:
    assert not unexplained(PAGE.read_text(), (path.read_text() for path in texts()))


def test_every_requirement_has_code_and_tests_or_is_said_to_be_missing() -> None:
    vague = [
        number
        for number, entry in ENTRY.findall(PAGE.read_text())
        if not ("Not yet" in entry or ("`resourcepool/" in entry and "`tests/" in entry))
    ]
    assert not vague


def test_every_path_and_name_on_the_page_exists() -> None:
    assert not missing(PAGE.read_text())


@pytest.mark.parametrize(
    "place",
    [
        "resourcepool/nowhere.py",
        "resourcepool/leases/verbs.py::take_over",
        "resourcepool/leases/lease.py::Lease.shout",
        "tests/test_origins.py::TestNothing::test_nothing",
    ],
)
def test_a_place_that_does_not_exist_is_found(place: str) -> None:
    assert missing(f"See `{place}`.") == [place]


def test_a_number_without_an_entry_is_found() -> None:
    assert unexplained("- **R7.1** What is asked. See R7.2.", ["(R7.1 to R7.2)"]) == {"R7.2"}


def test_no_text_that_users_see_names_a_number() -> None:
    seen = [text for path in (HOUSE / "resourcepool").rglob("*.py") for text in strings(path)]
    # The admin's documentation generator shows them.
    seen += [model.__doc__ or "" for model in apps.get_app_config("resourcepool").get_models()]
    seen += [path.read_text() for path in texts() if path.suffix in {".html", ".js", ".po"}]
    assert not [text for text in seen if NUMBER.search(text)]


def texts() -> Iterator[Path]:
    """Return every text of the repository that may mention a number."""
    yield from HOUSE.glob("*.md")
    for folder in FOLDERS:
        for path in (HOUSE / folder).rglob("*"):
            if path.suffix in TEXT and path not in (PAGE, Path(__file__).resolve()):
                yield path


def unexplained(page: str, mentioning: Iterable[str]) -> set[str]:
    """Return the numbers that are mentioned, by the page or by these texts, and have no entry on the page."""
    mentioned = {number for text in (page, *mentioning) for number in NUMBER.findall(text)}
    return mentioned - {number for number, _ in ENTRY.findall(page)}


def missing(page: str) -> list[str]:
    """Return the paths, and names in files, that the page mentions and that do not exist."""
    return [place for place in PLACE.findall(page) if not exists(place)]


def exists(place: str) -> bool:
    """Tell whether there is such a file, and in it such a name: ``path``, ``path::Class.method``."""
    path, _, names = place.partition("::")
    if not (HOUSE / path).exists():
        return False
    found: list[ast.AST] = [ast.parse((HOUSE / path).read_text())] if names else []
    for name in re.split(r"::|\.", names) if names else []:
        found = [node for within in found for node in ast.iter_child_nodes(within) if name in names_of(node)]
    return bool(found) or not names


def names_of(node: ast.AST) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def strings(path: Path) -> Iterator[str]:
    """Return the strings in a file of the package, but for docstrings."""
    tree = ast.parse(path.read_text())
    statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    docstrings = set(map(id, statements))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
