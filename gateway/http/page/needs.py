"""What needs a person now, hostname by hostname: pure, from documents that were read just now.

The census names the hostnames, and may be minutes old: each is judged anew here, by the same rule,
so what was mended since is not shown. Must not: read Redis. Called by `overview`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.attention import Concern
from gateway.certificates.census import Tally
from gateway.certificates.outlook import debt_words, outlook
from gateway.contract.names import Hostname
from gateway.store.documents import Unreadable
from gateway.views.holdings import is_readable
from gateway.views.issuances import counted, next_words, reason_rows
from gateway.views.times import duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.certificates.census import Census
    from gateway.certificates.states import Issuance
    from gateway.store.documents import Document

OF_EACH: Final = 20
"""How many hostnames of each concern are read anew."""

LONG_WAIT_MS: Final = 600_000
"""A wait that is shorter, and for which nobody set a time, may well end by itself."""

TITLES: Final = {
    Concern.NEAR_END: "Certificates that end and are not renewed",
    Concern.FAILED: "Failed issuances",
    Concern.WAITING: "Issuances that wait",
    Concern.UNREADABLE: "Not readable by this release",
    Concern.OWING: "Not cleaned up",
}
"""In the order in which they are shown: what clients feel first."""


@dataclass(frozen=True, slots=True)
class Need:
    """One hostname: what is the matter, since when (epoch ms; None: not known), and why."""

    hostname: Hostname
    what: str
    since_ms: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Concerned:
    """The hostnames of one concern. `more` were counted and not looked at."""

    concern: Concern
    title: str
    needs: tuple[Need, ...]
    more: int


def hostnames_of(census: Census | None) -> list[Hostname]:
    """Those that are to be read anew, each once."""
    listed = (_foremost(census, concern) for concern in TITLES)
    # The gateway's own are ASCII, and others may have written a census.
    return list(dict.fromkeys(Hostname(name) for name in chain(*listed) if name.isascii()))


def needs_of(
    census: Census | None,
    documents: Sequence[Document | Unreadable],
    now_ms: int,
    names: Mapping[str, str],
) -> list[Concerned]:
    """What is the matter with these documents by now, and how much more was counted.

    `census` is None where nothing was counted yet. `names` are what people call the authorities,
    by directory URL.
    """
    tally = Tally(now_ms)
    by_name = {document.hostname: _readable(document) for document in documents}
    for hostname, document in by_name.items():
        tally.add(hostname, document)
    now = tally.census(now_ms)
    found = []
    for concern, title in TITLES.items():
        needs = [
            _need(concern, Hostname(name), by_name[Hostname(name)], now_ms, names)
            for name in now.attention[concern.value]
        ]
        told = tuple(need for need in needs if need is not None)
        more = max(0, _count(census, concern) - len(_foremost(census, concern)))
        if told or more:
            found.append(Concerned(concern, title, told, more))
    return found


def _readable(document: Document | Unreadable) -> Document | None:
    if isinstance(document, Unreadable) or not is_readable(document):
        return None
    return document


def _foremost(census: Census | None, concern: Concern) -> Sequence[str]:
    return () if census is None else census.attention[concern.value][:OF_EACH]


def _count(census: Census | None, concern: Concern) -> int:
    """How many hostnames the census has counted of a concern."""
    if census is None:
        return 0
    if concern in (Concern.FAILED, Concern.WAITING):
        return census.issuances[concern.value]
    counts = {
        Concern.NEAR_END: census.near_end,
        Concern.UNREADABLE: census.unreadable,
        Concern.OWING: census.owing,
    }
    return counts[concern]


def _need(
    concern: Concern,
    hostname: Hostname,
    document: Document | None,
    now_ms: int,
    names: Mapping[str, str],
) -> Need | None:
    """None for a wait that may end by itself."""
    found = None if document is None else outlook(document, now_ms, names)
    if document is None or found is None or concern is Concern.UNREADABLE:
        return Need(hostname, "not readable", None, str(Unreadable(hostname)))
    issuance, certificate = issuance_of(document), certificate_of(document)
    following = next_words(found, now_ms)
    why = following if issuance is None else f"{_why(issuance)}; next: {following}"
    if concern is Concern.NEAR_END and certificate is not None:
        until_ms = certificate.valid_until_ms
        if certificate.may_be_served_at(now_ms):
            what = f"ends in {duration(until_ms - now_ms)}"
        else:
            what = f"expired {duration(now_ms - until_ms)} ago"
        return Need(hostname, what, certificate.renew_at_ms, why)
    if concern is Concern.OWING:
        debt = max(found.debts, key=lambda each: each.tries)
        tried = counted(debt.tries, "time")
        return Need(hostname, "owes", None, f"{debt_words(debt)} (tried {tried}); {why}")
    if issuance is None:
        return None
    kind = "a renewal" if issuance.renewal else "the first certificate"
    if concern is Concern.FAILED:
        return Need(hostname, f"{kind} failed", issuance.changed_at_ms, why)
    is_brief = now_ms - issuance.begun_at_ms < LONG_WAIT_MS
    if is_brief and issuance.told_until_ms is None:
        return None
    return Need(hostname, f"{kind} waits", issuance.begun_at_ms, why)


def _why(issuance: Issuance) -> str:
    told = dict(reason_rows(issuance))
    why = told.get("why", issuance.state.value)
    return f"{why}; held until {told['held until']}" if "held until" in told else why
