"""What keepers have in common: a round that breaks, and how long the certificates are good."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.agent.clocks import Clocks
from gateway.agent.config import load_agent_settings
from gateway.agent.keepers import Keeper, Kept as OneKept, carry_out, outlook, put_together
from gateway.agent.memory import Memories
from gateway.agent.rounds import Fault, Round
from gateway.agent.status import OwnershipStatus, read_statuses
from gateway.client import read_bundle
from gateway.contract import Hostname
from tests.lab.certificates import LabAuthority

NOW = 1_795_000_000_000
HOUR_MS = 3_600_000
HOSTNAME = Hostname("relay.example.test")


class Broken:
    """A keeper with a fault that nobody foresaw; no real one is known to have any."""

    what = "record"
    hostname = HOSTNAME

    async def round(self) -> Round:
        raise ZeroDivisionError("gwc_secret")

    def note_fault(self, fault: Fault) -> None:
        """Nobody asks in these tests."""


class BrokenContact:
    """A way to the gateway with such a fault."""

    async def call(self, *_: object) -> None:
        raise ZeroDivisionError


CONFIG = f"""
[gateway]
url = "https://gateway.example.test"
token_env = "TOKEN"
[[ownership]]
app_id = "relay"
hostname = "{HOSTNAME}"
[ownership.record]
value = "198.51.100.85"
[ownership.certificate]
deploy_hook = ["true"]
"""


@dataclass
class Files:
    """What `outlook` reads of a certificate's keeper."""

    not_after_ms: int | None
    has_looked: bool = True


@dataclass
class Kept:
    """What `outlook` reads of an ownership."""

    hostname: str
    certificate: Files | None


def told(**ends: int | None) -> str:
    kept: list[Any] = [Kept(name, Files(end)) for name, end in ends.items()]
    return outlook([*kept, Kept("record-only", None)], NOW)  # type: ignore[list-item]


def test_round_that_breaks_is_a_fault_of_this_keeper_alone() -> None:
    with capture_logs() as lines:
        came_to = asyncio.run(carry_out(Broken()))
    assert came_to.needs_a_person
    assert came_to.fault is not None
    assert came_to.fault.sentence == (
        "a fault of the agent itself: ZeroDivisionError; its log says more"
    )
    assert lines[0]["exc_info"] is True


async def _reload_that_breaks(_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("keeper_of", "fault_of"),
    [
        (lambda kept: kept.record, lambda status: status.record.fault),
        (lambda kept: kept.certificate, lambda status: status.certificate.fault),
        (lambda kept: kept.deployer, lambda status: status.certificate.hook.fault),
    ],
    ids=["record", "certificate", "hook"],
)
async def test_round_that_breaks_is_told_by_status_as_any_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keeper_of: Callable[[OneKept], Keeper],
    fault_of: Callable[[OwnershipStatus], Any],
) -> None:
    (tmp_path / "agent.toml").write_text(f'state_dir = "state"\n{CONFIG}')
    settings = load_agent_settings(tmp_path / "agent.toml", {})
    contact: Any = BrokenContact()
    (kept,) = put_together(settings, contact, Clocks()).kept
    issued = LabAuthority().issue(HOSTNAME)
    assert kept.deployer is not None
    lineage = kept.deployer._lineage
    lineage.install(read_bundle(issued.chain_pem, issued.private_key_pem, HOSTNAME))
    monkeypatch.setattr("gateway.agent.hook.Hook.run", _reload_that_breaks)
    came_to = await carry_out(keeper_of(kept))
    await kept.notebook.written()
    (status,) = read_statuses(settings, Memories(settings.state_dir).read, NOW)
    assert came_to.fault is not None
    assert fault_of(status).sentence == came_to.fault.sentence
    assert not status.is_current


def test_outlook_names_the_end_of_the_one_certificate() -> None:
    assert told(a=NOW + HOUR_MS) == (
        "the certificate on disk is good until 2026-11-18 12:06:40 UTC (a)"
    )


def test_outlook_names_the_first_of_several_that_ends() -> None:
    assert told(a=NOW + 2 * HOUR_MS, b=NOW + HOUR_MS) == (
        "2 certificates on disk are good, the first ends 2026-11-18 12:06:40 UTC (b)"
    )


def test_outlook_counts_those_without_a_good_certificate() -> None:
    assert told(a=NOW, b=None) == "2 hostnames have no good certificate on disk"


def test_outlook_without_certificates_says_nothing() -> None:
    assert told() == ""


def test_outlook_tells_those_apart_that_were_not_looked_at_yet() -> None:
    kept: list[Any] = [Kept("a", Files(NOW + HOUR_MS)), Kept("b", Files(None, has_looked=False))]
    assert outlook(kept, NOW) == (
        "the certificate on disk is good until 2026-11-18 12:06:40 UTC (a); "
        "1 hostname was not looked at yet"
    )
