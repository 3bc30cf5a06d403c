"""The verdicts of `gateway explain` in words, and what they leave open: pure.

Called by `views.explanation`, which has all the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.access.foresight import ANY_APP, NO_TIME, UNKNOWN, StepUnknown
from gateway.certificates.events import AuthoritiesHeld, AuthorityChosen
from gateway.certificates.outlook import authority_name
from gateway.contract import Unauthorized
from gateway.holdings.hold import Hold, hold_for
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.store.documents import Document, Holder
from gateway.views.holdings import record_words, whose_words
from gateway.views.times import duration, time_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.access.foresight import Asker, Foreseen
    from gateway.dns.situation import MarkerSeen
    from gateway.views.explanation import Explanation

_CHANGES: Final = {
    "managed-created": "this ownership has no address record there",
    "managed-updated": "this ownership's record there is another",
}


def rows(found: Explanation) -> Iterator[tuple[str, str]]:
    """Who asks, what each call would be answered, and what could not be tried."""
    yield "asked by", _asker_words(found.asker)
    record = found.record
    yield "sync", f"of {record_words(record)}, would answer"
    yield "sync", _sync_words(found)
    yield "certificate", f"a request would answer {_certificate_words(found)}"
    places = promised(found)
    if places:
        words = f"whether the server lets the key change {' and '.join(places)}"
        more = "; what the authority says" if _goes_to_an_authority(found) else ""
        yield "not tried", f"{words}{more}"


def promised(found: Explanation) -> list[str]:
    """The names that the verdicts promise a change at, which no rehearsed update tries."""
    names: list[str] = [found.hostname] if found.sync.status in _CHANGES else []
    target = found.challenge.target
    if _goes_to_an_authority(found) and target is not None and target.fault is None:
        names.append(target.name)
    return names


def _goes_to_an_authority(found: Explanation) -> bool:
    return isinstance(found.certificate.first, AuthorityChosen)


def _asker_words(asker: Asker) -> str:
    if not asker.is_real:
        return asker.why
    app = ", with a new appId" if asker.app_id == ANY_APP else f" for {asker.app_id}"
    return f"{asker.client_id}{app} ({asker.why})"


def _sync_words(found: Explanation) -> str:
    verdict = found.sync
    if verdict.status == UNKNOWN:
        return f"not known: {verdict.message}"
    why = _CHANGES.get(verdict.status, verdict.message)
    if verdict.status == "record-conflict":
        why = _conflict_words(found, verdict.message)
    elif verdict.status == Unauthorized.code:
        why = _unknown_words(found.asker)
    return f"{verdict.status}: {why}{_again(verdict)}"


def _certificate_words(found: Explanation) -> str:
    verdict = found.certificate
    if verdict.status == UNKNOWN:
        return f"not known: {verdict.message}"
    if verdict.status == "ready":
        certificate = found.outlook and found.outlook.certificate
        if not certificate:
            return "ready"
        until, after = map(time_words, (certificate.valid_until_ms, certificate.renew_after_ms))
        return f"ready: valid until {until}; the client asks again after {after}"
    if verdict.status == "pending":
        return f"pending: {_start_words(found)}"
    why = verdict.message
    if verdict.reason == "hostname-conflict":
        why = _conflict_words(found, verdict.message)
    elif verdict.status == Unauthorized.code:
        why = _unknown_words(found.asker)
    reason = f" {verdict.reason}" if verdict.reason else ""
    return f"{verdict.status}{reason}: {why}{_again(verdict)}"


def _unknown_words(asker: Asker) -> str:
    if asker.client is None:
        return f"there is no client {asker.client_id}"
    return f"{asker.client_id} has no token that is valid"


def _start_words(found: Explanation) -> str:
    first = found.certificate.first
    if first is None:
        return "an issuance is under way"
    if isinstance(first, AuthorityChosen):
        names = found.authority_names
        words = f"an issuance would start at {authority_name(first.directory_url, names)}"
    elif isinstance(first, AuthoritiesHeld):
        words = f"an issuance would start, and wait: {first.detail}"
    elif isinstance(first, StepUnknown):
        words = f"an issuance would start; where is not known: {NO_TIME}"
    else:
        words = "an issuance would start"
    fault = found.challenge.fault
    return words if fault is None else f"{words}, and get no further: {fault}"


def _conflict_words(found: Explanation, message: str | None) -> str | None:
    """What holds the hostname against who asks: more than the wire may tell."""
    document = found.document
    asker = Holder(found.asker.client_id, found.asker.app_id)
    if isinstance(document, Document):
        hold, holder = hold_for(document, asker), document.holder
        if hold is Hold.CLAIMED:
            return f"{found.hostname} is claimed by an operator"
        if holder == THE_GATEWAY:
            return f"{found.hostname} is held by {holder.client_id} itself, for {holder.app_id}"
        if hold is Hold.ANOTHERS and holder is not None:
            return f"{found.hostname} is held by another ownership: {whose_words(holder)}"
    markers = () if found.name is None else found.name.markers
    if any(_is_no_proof(marker, asker) for marker in markers):
        return (
            f"{found.hostname} is held by records that are not proven to be this ownership's"
            " (see marker)"
        )
    return message


def _is_no_proof(marker: MarkerSeen, asker: Holder) -> bool:
    """Whether the gateway made the marker, and not for what this ownership has there now."""
    owner = marker.owner
    is_askers = owner is not None and Holder(owner.client_id, owner.app_id) == asker
    return marker.is_own_key and not (is_askers and marker.is_whole)


def _again(verdict: Foreseen) -> str:
    if verdict.retry_after_ms is None:
        return ""
    return f" (the client asks again in {duration(verdict.retry_after_ms)})"
