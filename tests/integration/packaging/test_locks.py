"""The lock files say the same of the same package, fit the project, and name no address."""

import itertools
import re
import tomllib
from dataclasses import dataclass

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.integration.packaging.installed import ROOT

BASE_LOCK = "requirements-client.txt"
SERVER_LOCK = "requirements.txt"
DEV_LOCK = "requirements-dev.txt"
LOCKS = [BASE_LOCK, SERVER_LOCK, DEV_LOCK, "requirements-build.txt"]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@dataclass(frozen=True)
class Pin:
    version: str
    hashes: frozenset[str]


def read_lock(name: str) -> dict[str, Pin]:
    text = (ROOT / name).read_text().replace("\\\n", " ")
    pins = {}
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            pinned = re.match(r"([\w.-]+)==(\S+)((?: +--hash=sha256:[0-9a-f]{64})+) *$", line)
            assert pinned is not None, f"{name}: {line[:80]}"
            pins[canonicalize_name(pinned[1])] = Pin(pinned[2], frozenset(pinned[3].split()))
    return pins


@pytest.mark.parametrize("name", LOCKS)
def test_lock_pins_versions_with_hashes_and_names_no_address(name: str) -> None:
    assert read_lock(name)
    assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize(("smaller", "larger"), [(BASE_LOCK, SERVER_LOCK), (SERVER_LOCK, DEV_LOCK)])
def test_lock_is_part_of_the_next_larger_one(smaller: str, larger: str) -> None:
    whole = read_lock(larger)
    assert {name: whole.get(name) for name in read_lock(smaller)} == read_lock(smaller)


@pytest.mark.parametrize(
    ("lock", "ranges"),
    [
        (BASE_LOCK, PROJECT["dependencies"]),
        (SERVER_LOCK, [*PROJECT["dependencies"], *EXTRAS["server"]]),
        (DEV_LOCK, [*PROJECT["dependencies"], *itertools.chain(*EXTRAS.values())]),
    ],
    ids=[BASE_LOCK, SERVER_LOCK, DEV_LOCK],
)
def test_lock_fits_the_ranges_of_the_project(lock: str, ranges: list[str]) -> None:
    pins = read_lock(lock)
    asked = [Requirement(each) for each in ranges]
    unmet = [
        str(each)
        for each in asked
        if each.name != "gateway"
        and not (each.name in pins and each.specifier.contains(pins[each.name].version))
    ]
    assert unmet == []


def test_tools_come_with_the_server_and_its_traces() -> None:
    assert "gateway[server,traces]" in EXTRAS["dev"]


def test_server_comes_without_what_only_traces_take() -> None:
    asked_by_traces = {Requirement(each).name for each in EXTRAS["traces"]}
    assert asked_by_traces.isdisjoint(read_lock(SERVER_LOCK))


def test_base_lock_holds_no_package_that_only_the_server_asks_for() -> None:
    asked_by_server = {Requirement(each).name for each in EXTRAS["server"]}
    # httpx brings it as well.
    assert asked_by_server & set(read_lock(BASE_LOCK)) == {"certifi"}
