"""What keepers have in common: a round that breaks, and how long the certificates are good."""

import asyncio
from dataclasses import dataclass
from typing import Any

from structlog.testing import capture_logs

from gateway.agent.keepers import carry_out, outlook
from gateway.agent.rounds import Round
from gateway.contract import Hostname

NOW = 1_795_000_000_000
HOUR_MS = 3_600_000
HOSTNAME = Hostname("relay.example.test")


class Broken:
    """A keeper with a fault that nobody foresaw; no real one is known to have any."""

    what = "record"
    hostname = HOSTNAME

    async def round(self) -> Round:
        raise ZeroDivisionError("gwc_secret")


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
