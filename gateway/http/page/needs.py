"""What needs a person now, hostname by hostname: pure, from documents that were read just now.

The census names the hostnames, and may be minutes old: each is judged anew here, by the same rule,
so what was mended since is not shown. What has one cause is told once (`causes`). Must not: read
Redis. Called by `overview`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gateway.certificates.agenda import issuance_of
from gateway.certificates.attention import Concern
from gateway.certificates.census import LATE_AFTER_MS, Tally
from gateway.certificates.outlook import authority_name, debt_words, outlook
from gateway.certificates.states import Reason, State
from gateway.contract.names import Hostname
from gateway.http.page.causes import Alike, Need, alike
from gateway.store.documents import Unreadable
from gateway.views.holdings import is_readable
from gateway.views.issuances import counted, next_words, reason_rows
from gateway.views.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway.certificates.census import Census
    from gateway.certificates.outlook import Outlook
    from gateway.certificates.states import Issuance
    from gateway.store.documents import Document

OF_EACH: Final = 50
"""How many hostnames of each concern are read anew."""

CAUSES_SHOWN: Final = 8
"""How many causes of each concern are told."""

TITLES: Final = {
    Concern.NEAR_END: "Certificates that end and are not renewed",
    Concern.WAITING: "Issuances that wait",
    Concern.FAILED: "Failed issuances",
    Concern.UNREADABLE: "Not readable by this release",
    Concern.OWING: "Not cleaned up",
}
"""In the order in which they are shown: what clients feel first."""


@dataclass(frozen=True, slots=True)
class Concerned:
    """The hostnames of one concern, by cause; `more` are not told one by one."""

    concern: Concern
    title: str
    causes: tuple[Alike, ...]
    more: int

    @property
    def count(self) -> int:
        """How many they are."""
        return sum(each.count for each in self.causes) + self.more


@dataclass(frozen=True, slots=True)
class Waits:
    """How many certificates wait for a zone, as far as was looked, the first since a time."""

    count: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class Needs:
    """What is the matter, and what waits for which zone: also what is too brief to be told."""

    concerned: tuple[Concerned, ...]
    waits: Mapping[str, Waits]


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
    unread_failures: int = 0,
    denials: Mapping[Hostname, str] = MappingProxyType({}),
) -> Needs:
    """What is the matter with these documents by now, and how much more was counted.

    `census` is None where nothing was counted yet. `names` are what people call the authorities,
    by directory URL. `unread_failures`: how many more hostnames an order failed for lately.
    `denials`: why no new certificate is ordered for a hostname, where its holder may have none.
    """
    tally = Tally(now_ms)
    by_name = {document.hostname: _readable(document) for document in documents}
    for hostname, document in by_name.items():
        tally.add(hostname, document)
    now = tally.census(now_ms)
    outlooks = {
        name: None if document is None else outlook(document, now_ms, names, denials.get(name))
        for name, document in by_name.items()
    }
    found, waiting = [], []
    for concern, title in TITLES.items():
        each_need = [
            _need(concern, outlooks[Hostname(name)], Hostname(name), now_ms, names)
            for name in now.attention[concern.value]
        ]
        needs = [need for need in each_need if need is not None]
        if concern is Concern.WAITING:
            waiting = needs
        unread = max(0, _count(census, concern) - len(_foremost(census, concern)))
        if concern is Concern.FAILED:
            unread = max(unread, unread_failures)
        elif any(need.is_brief for need in needs):
            unread = 0  # they are in the order of their age: the others are briefer
        causes = alike(need for need in needs if not need.is_brief)
        more = unread + sum(each.count for each in causes[CAUSES_SHOWN:])
        if causes or more:
            found.append(Concerned(concern, title, tuple(causes[:CAUSES_SHOWN]), more))
    return Needs(tuple(found), _waits(waiting, by_name))


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
    counts = {
        Concern.FAILED: census.issuances[State.FAILED.value],
        Concern.WAITING: census.held_up,
        Concern.NEAR_END: census.near_end,
        Concern.UNREADABLE: census.unreadable,
        Concern.OWING: census.owing,
    }
    return counts[concern]


def _need(
    concern: Concern,
    found: Outlook | None,
    hostname: Hostname,
    now_ms: int,
    names: Mapping[str, str],
) -> Need | None:
    if found is None or concern is Concern.UNREADABLE:
        why = f"What Redis has of {hostname} is not readable by this release"
        return Need(hostname, "not readable", None, why)
    if concern is Concern.NEAR_END:
        return _of_certificate(found, now_ms, names)
    if concern is Concern.OWING:
        return _of_debts(found, now_ms, names)
    return _of_issuance(concern, found, now_ms, names)


def _of_certificate(found: Outlook, now_ms: int, names: Mapping[str, str]) -> Need | None:
    certificate, issuance = found.certificate, found.issuance
    if certificate is None:
        return None
    hostname, until_ms = found.document.hostname, certificate.valid_until_ms
    if certificate.may_be_served_at(now_ms):
        what = f"ends in {duration(until_ms - now_ms)}"
    else:
        what = f"expired {duration(now_ms - until_ms)} ago"
    following = next_words(found, now_ms)
    if issuance is None:
        return Need(hostname, what, certificate.renew_at_ms, following)
    place = _place(issuance, names)
    return Need(hostname, what, certificate.renew_at_ms, _why(issuance), following, place=place)


def _of_debts(found: Outlook, now_ms: int, names: Mapping[str, str]) -> Need:
    debt = max(found.debts, key=lambda each: each.tries)
    why = f"{debt_words(debt)} (tried {counted(debt.tries, 'time')})"
    place = debt.zone and f"zone {debt.zone}"
    if debt.directory_url is not None:
        place = authority_name(debt.directory_url, names)
    return Need(found.document.hostname, "owes", None, why, next_words(found, now_ms), place=place)


def _of_issuance(
    concern: Concern, found: Outlook, now_ms: int, names: Mapping[str, str]
) -> Need | None:
    issuance = found.issuance
    if issuance is None:
        return None
    kind = "a renewal" if issuance.renewal else "the first certificate"
    if concern is Concern.FAILED:
        verb = "failed"
    else:
        verb = "waits" if issuance.state is State.WAITING else "is not finished"
    is_held = issuance.told_until_ms is not None
    is_late = now_ms - issuance.since_ms >= LATE_AFTER_MS
    is_again = issuance.begun_at_ms != issuance.since_ms
    return Need(
        found.document.hostname,
        f"{kind} {verb}",
        issuance.since_ms,
        _why(issuance),
        next_words(found, now_ms),
        attempt_ms=issuance.begun_at_ms if is_again else None,
        place=_place(issuance, names),
        zone=issuance.challenge_zone if _is_for_zone(issuance) else None,
        is_brief=concern is Concern.WAITING and not (is_held or is_late),
    )


def _is_for_zone(issuance: Issuance) -> bool:
    """Whether a zone is waited for, and not an authority."""
    return issuance.state is State.PUBLISHED or issuance.reason is Reason.ZONE_UNAVAILABLE


def _place(issuance: Issuance, names: Mapping[str, str]) -> str | None:
    if _is_for_zone(issuance):
        return issuance.challenge_zone and f"zone {issuance.challenge_zone}"
    url = issuance.directory_url or issuance.failed_at
    return None if url is None else authority_name(url, names)


def _why(issuance: Issuance) -> str:
    told = dict(reason_rows(issuance))
    why = told.get("why", f"it is in the state {issuance.state}, and nothing is said about it")
    if issuance.state is State.PUBLISHED and issuance.message is not None:
        # As it is told a moment later, in the pause between two looks.
        why = f"{Reason.ZONE_UNAVAILABLE.value}: {issuance.message}"
    return f"{why}; held until {told['held until']}" if "held until" in told else why


def _waits(needs: Iterable[Need], by_name: Mapping[Hostname, Document | None]) -> dict[str, Waits]:
    """What waits for each zone, since when its challenges are there."""
    waits: dict[str, Waits] = {}
    for need in needs:
        document = by_name[need.hostname]
        issuance = None if document is None else issuance_of(document)
        if need.zone is None or issuance is None:
            continue
        since_ms = issuance.published_at_ms or issuance.changed_at_ms
        before = waits.get(need.zone, Waits(0, since_ms))
        waits[need.zone] = Waits(before.count + 1, min(before.since_ms, since_ms))
    return waits
