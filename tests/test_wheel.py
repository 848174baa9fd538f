"""The wheel contains all files that the package needs at run time, and no others; its extras are known."""

import shutil
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import resourcepool
from tests.spawned import ROOT
from tests.wheel import EXTRAS, OF_THE_REPOSITORY, build, file_problems

PROJECT = tomllib.loads((Path(ROOT) / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_it_has_every_file_of_the_package_and_nothing_besides(wheel: Path) -> None:
    assert [*file_problems(wheel)] == []


@pytest.mark.parametrize(
    "name",
    [
        "resourcepool/py.typed",
        "resourcepool/locale/zh_Hans/LC_MESSAGES/django.mo",
        "resourcepool/templates/resourcepool/dashboard/page.html",
        "resourcepool/static/resourcepool/admin.css",
        "resourcepool/migrations/0001_initial.py",
    ],
)
def test_a_file_that_is_missing_is_noticed(wheel: Path, tmp_path: Path, name: str) -> None:
    less = tmp_path / "less.whl"
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(less, "w") as part:
        for one in whole.namelist():
            if one != name:
                part.writestr(one, whole.read(one))
    assert [*file_problems(less)] == [f"{name} is missing"]


@pytest.mark.parametrize("name", ["tests/conftest.py", "project/settings.py", "resourcepool/old.py"])
def test_a_file_that_does_not_belong_there_is_noticed(wheel: Path, tmp_path: Path, name: str) -> None:
    more = shutil.copy(wheel, tmp_path / "more.whl")
    with zipfile.ZipFile(more, "a") as archive:
        archive.writestr(name, "")
    assert [*file_problems(more)] == [f"{name} does not belong there"]


def test_its_metadata_names_version_licence_python_and_documentation(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("django-resourcepool", resourcepool.__version__)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("MIT", "LICENSE")
    assert metadata["Requires-Python"] == ">=3.11"
    assert any(url.startswith("Documentation, https://") for url in metadata.get_all("Project-URL", []))


def test_each_extra_brings_what_it_names_and_make_wheel_uses_it(metadata: Message) -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(extras)
    assert set(EXTRAS) == set(extras) - OF_THE_REPOSITORY
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    for extra, named in extras.items():
        wanted = {canonicalize_name(Requirement(text).name) for text in named}
        brought = {
            canonicalize_name(one.name)
            for one in required
            if one.marker and "extra" in str(one.marker) and one.marker.evaluate({"extra": extra})
        }
        assert brought == wanted
