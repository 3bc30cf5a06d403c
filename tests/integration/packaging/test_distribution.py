"""The distribution that `pip` builds of the tree: what is in it, and what it asks for."""

import shutil
import subprocess
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.integration.packaging.installed import BASE, LIMIT_SECONDS, ROOT, WITH_SERVER, applying

SOURCES = ["pyproject.toml", "README.md", "LICENSE"]
LEFT_OUT = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools writes into the tree that it builds."""
    folder = tmp_path_factory.mktemp("distribution")
    tree = folder / "tree"
    shutil.copytree(ROOT / "gateway", tree / "gateway", ignore=LEFT_OUT)
    for name in SOURCES:
        shutil.copy(ROOT / name, tree)
    command = [WITH_SERVER.python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    subprocess.run(
        [*command, "--no-build-isolation", "--wheel-dir", folder, tree],
        check=True,
        timeout=LIMIT_SECONDS,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_distribution_holds_every_file_of_the_package(wheel: Path) -> None:
    files = (path for path in (ROOT / "gateway").rglob("*") if path.is_file())
    ours = {str(path.relative_to(ROOT)) for path in files if path.parent.name != "__pycache__"}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == ours


def test_distribution_asks_for_what_the_base_install_has(metadata: Message) -> None:
    requires = tuple(Requirement(each) for each in metadata.get_all("Requires-Dist", []))
    installed = BASE.distributions()["gateway"].requires
    assert {str(each) for each in applying(requires, frozenset())} == {
        str(each) for each in applying(installed, frozenset())
    }


def test_distribution_offers_the_server_its_traces_and_the_tools_as_extras(
    metadata: Message,
) -> None:
    assert metadata.get_all("Provides-Extra") == ["server", "traces", "dev"]
