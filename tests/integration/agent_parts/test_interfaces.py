"""Addresses of real interfaces: mostly in a network namespace of their own."""

import json
import resource
import subprocess
import sys

import pytest

from gateway.agent.addresses import AddressUnknown, InterfaceAddress, address
from tests.lab.process import find_program

ANSWER_LIMIT_SECONDS = 60


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What `asking` says. A user namespace makes its process root over the network namespace."""
    find_program("ip", "iproute2")
    unshare = find_program("unshare", "util-linux")
    program = [sys.executable, "-m", "tests.integration.agent_parts.asking"]
    done = subprocess.run(
        [unshare, "--map-root-user", "--net", *program],
        check=False,
        capture_output=True,
        text=True,
        timeout=ANSWER_LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, str] = json.loads(done.stdout)
    return told


async def said_here(interface: str) -> str:
    """What is said of an interface of this machine."""
    with pytest.raises(AddressUnknown) as caught:
        await address(InterfaceAddress(interface, "A"))
    return str(caught.value)


async def test_loopback_of_this_machine_is_not_published() -> None:
    said = await said_here("lo")
    assert said.startswith("the interface lo has no IPv4 address that can be published: 127.0.0.")


async def test_interface_that_this_machine_lacks_is_told() -> None:
    said = await said_here("nowhere0")
    assert said == "this machine has no network interface nowhere0 with an address"


async def test_kernel_that_does_not_answer_is_told() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        said = await said_here("lo")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert said == "the addresses of the interface lo cannot be read: Too many open files"


def test_lowest_address_is_published_at_first(answers: dict[str, str]) -> None:
    assert answers["lowest"] == "10.1.2.3"


def test_published_address_stays_while_it_is_there(answers: dict[str, str]) -> None:
    assert answers["kept"] == "203.0.113.77"


def test_published_address_that_is_gone_is_replaced(answers: dict[str, str]) -> None:
    assert answers["gone"] == "10.1.2.3"


def test_published_address_stays_when_a_lower_one_comes(answers: dict[str, str]) -> None:
    assert answers["lower came"] == "2001:db8::5"


def test_address_with_a_label_is_the_interface_s_own(answers: dict[str, str]) -> None:
    assert answers["labelled"] == "198.51.100.9"


def test_temporary_address_is_not_published_even_if_it_was(answers: dict[str, str]) -> None:
    assert answers["had temporary"].startswith("2001:db8::")
    assert answers["temporary"] == answers["lasting"] == "2001:db8::5"


def test_deprecated_address_is_not_published_even_if_it_was(answers: dict[str, str]) -> None:
    assert answers["deprecated"] == "2001:db8::5"


def test_tentative_address_is_not_published(answers: dict[str, str]) -> None:
    said = answers["tentative"]
    assert said.startswith("the interface quiet0 has no IPv6 address that can be published: ")
    assert "2001:db8:3::5 is tentative: not yet known to be free" in said


def test_loopback_address_is_not_published(answers: dict[str, str]) -> None:
    said = answers["loopback"]
    assert said.endswith("no IPv6 address that can be published: ::1 is a loopback address")


@pytest.mark.parametrize(("question", "name"), [("missing", "nowhere0"), ("bare", "bare0")])
def test_interface_without_an_address_is_told(
    answers: dict[str, str], question: str, name: str
) -> None:
    assert answers[question] == f"this machine has no network interface {name} with an address"
