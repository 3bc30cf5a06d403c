"""The ownerships that are tried, and the files that name them."""

import pytest

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.owner import Owner
from gateway.holdings.candidates import Candidates, Supposed, read_hostnames, read_supposed

HERE, THERE = Hostname("here.example.test"), Hostname("there.example.test")


def owners(*pairs: str, hostname: Hostname = HERE) -> list[Owner]:
    split = [pair.split("/") for pair in pairs]
    return [Owner(ClientId(client), AppId(app), hostname) for client, app in split]


def candidates(*supposed: Supposed, app_ids: tuple[str, ...] = ()) -> Candidates:
    """Of the clients `one` and `two`, of which only `one` may have what is here."""
    return Candidates(
        [ClientId("one"), ClientId("two")],
        map(AppId, app_ids),
        supposed,
        lambda client_id, hostname: client_id == "one" or hostname != HERE,
    )


def test_every_app_id_is_tried_for_clients_that_may_have_the_hostname() -> None:
    found = candidates(app_ids=("a", "b"))
    assert found.of(HERE) == owners("one/a", "one/b")
    assert found.of(THERE) == owners("one/a", "one/b", "two/a", "two/b", hostname=THERE)
    assert (found.clients_of(HERE), found.clients_of(THERE)) == (["one"], ["one", "two"])


def test_app_id_that_is_found_later_is_tried_as_well() -> None:
    found = candidates()
    assert found.of(HERE) == []
    found.add_app_id(AppId("a"))
    found.add_app_id(AppId("a"))
    assert found.of(HERE) == owners("one/a")


def test_ownership_that_is_named_comes_first_and_once_whatever_the_policy() -> None:
    named = Supposed(ClientId("two"), AppId("b"))
    found = candidates(named, app_ids=("a",))
    assert found.of(HERE) == owners("two/b", "one/a", "one/b")
    assert found.of(THERE)[0] == owners("two/b", hostname=THERE)[0]
    assert len(found.of(THERE)) == 4


def test_ownership_that_is_named_with_a_hostname_is_tried_only_there() -> None:
    found = candidates(Supposed(ClientId("three"), AppId("c"), HERE))
    assert found.of(HERE) == owners("three/c", "one/c")
    assert owners("three/c", hostname=THERE)[0] not in found.of(THERE)


def test_file_of_owners_is_read() -> None:
    text = f"# comment\n\n one a:b \ntwo\tc {HERE}\n"
    assert read_supposed(text) == (
        [
            Supposed(ClientId("one"), AppId("a:b")),
            Supposed(ClientId("two"), AppId("c"), HERE),
        ],
        [],
    )


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("one", "line 2 must be `clientId appId [hostname]`, not 'one'"),
        ("one a here.test more", "line 2 must be"),
        ("one \N{SNOWMAN}", "line 2: appId must be"),
        ("\N{SNOWMAN} a", "line 2: clientId must be"),
        ("one a Here.test", "line 2: hostname must be spelled"),
    ],
)
def test_wrong_line_of_a_file_of_owners_is_told(line: str, fault: str) -> None:
    found, faults = read_supposed(f"one a\n{line}")
    assert len(found) == 1
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_file_of_hostnames_is_read_and_its_faults_are_told() -> None:
    found, faults = read_hostnames(f"{HERE}\n# comment\n\n*.example.test\n{THERE}\n")
    assert found == [HERE, THERE]
    assert len(faults) == 1
    assert faults[0].startswith("line 4 must be a hostname")
