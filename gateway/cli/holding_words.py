"""The JSON of `gateway holdings`, and the words of what it does: pure.

`views.holdings` has the words of what is held. Shows no key. Called by `cli.holdings`.
"""

from __future__ import annotations

from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.holdings.rebuilding import Upshot
from gateway.holdings.remembered import remembered_record
from gateway.store.documents import Unreadable
from gateway.views.holdings import is_readable, record_words, whose_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.certificates.states import Debt
    from gateway.contract.names import Hostname
    from gateway.dns.owner import Owner
    from gateway.dns.zones import Zones
    from gateway.holdings.forgetting import Forgotten
    from gateway.holdings.handing_over import HandedOver
    from gateway.holdings.rebuilding import Finding, ZoneReport
    from gateway.store.documents import Document

MEANINGS: Final = {
    Upshot.RESTORED: "proven, and written into Redis",
    Upshot.RESTORABLE: "proven; would be written into Redis",
    Upshot.KNOWN: "proven, and known to Redis",
    Upshot.DISAGREES: "proven, and Redis says something else; nothing was written",
    Upshot.CLIENT_UNKNOWN: "proven, and there is no such client: provision it, run this again",
    Upshot.UNPROVEN: "no candidate proves its marker for the address there",
    Upshot.UNKNOWN_KEY: "its marker was made with a key that the keyring lacks: another gateway's,"
    " or one that was lost",
    Upshot.MALFORMED: "what looks like a marker is none",
    Upshot.ADDRESS_GONE: "a marker without an address",
    Upshot.ADDRESS_EDITED: "the address is not the one that the marker was made for: a conflict"
    " for all, its owner too",
    Upshot.AMBIGUOUS: "several records are proven, or may be",
    Upshot.NO_HOSTNAME: "a marker at a name that is no hostname",
    Upshot.NOT_IN_ZONE: "Redis says that it is published, and the zone has no marker",
    Upshot.CHANGED: "changed while it was looked at: run this again",
    Upshot.UNREAD: "could not be read",
    Upshot.UNREADABLE: "what Redis has of it is not readable by this release; nothing was written",
}

STRAYS_SHOWN: Final = 5

_HELD: Final = ("record", "certificateValidUntil", "issuance", "claim")
"""What `_held_view` tells of a document that is readable."""


def view(document: Document | Unreadable, zones: Zones) -> dict[str, Any]:
    """A document for programs."""
    zone = zones.holding(document.hostname)
    where = {"hostname": document.hostname, "zone": None if zone is None else zone.name}
    if isinstance(document, Unreadable):
        unknown = dict.fromkeys(("clientId", "appId", *_HELD, "debts"))
        return {**where, **unknown, "readable": False}
    holder = document.holder
    return {
        **where,
        "clientId": None if holder is None else holder.client_id,
        "appId": None if holder is None else holder.app_id,
        **_held_view(document),
        "debts": len(document.debts),
    }


def rebuilt_view(
    reports: Sequence[ZoneReport], *, dry_run: bool, strays: Sequence[Hostname] = ()
) -> dict[str, Any]:
    """What a rebuild came to, for programs; `strays` are names that were given for no zone."""
    return {
        "dryRun": dry_run,
        "settled": not strays and all(report.is_settled for report in reports),
        "inNoZone": list(strays),
        "zones": [
            {
                "zone": report.zone,
                "whole": report.partial is None,
                "unreadable": report.is_unreadable,
                "detail": report.partial,
                "lookedAt": report.looked_at,
                "names": [_finding_view(finding) for finding in report.findings],
                "challenges": [
                    {"name": each.name, "value": each.value} for each in report.challenges
                ],
            }
            for report in reports
        ],
    }


def rebuilt_lines(reports: Sequence[ZoneReport]) -> Iterator[str]:
    """What a rebuild came to, for a person: each name but those known already, then the counts."""
    for report in reports:
        for finding in report.findings:
            if finding.outcome is not Upshot.KNOWN:
                yield _finding_line(finding)
        for challenge in report.challenges:
            yield (
                f"{challenge.name}  TXT {challenge.value}  a challenge that nothing in Redis owes:"
                " another gateway's, or left over; nothing proves whose it is"
            )
        yield _summary(report)


def stray_words(strays: Sequence[Hostname]) -> str:
    """Names that were given and that no rebuild looks at, for a person."""
    more = len(strays) - STRAYS_SHOWN
    shown = [*strays[:STRAYS_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    return f"Of --names, {len(strays)} in no configured zone: {', '.join(shown)}."


def handed_view(taker: Owner, done: HandedOver) -> dict[str, Any]:
    """A hand-over for programs."""
    return {
        "hostname": taker.hostname,
        "clientId": taker.client_id,
        "appId": taker.app_id,
        "record": done.record.to_wire(),
        "certificateReleased": done.released,
        "wasDone": done.was_done,
    }


def handed_words(taker: Owner, done: HandedOver) -> str:
    """A hand-over for a person."""
    before = " The zone said so already." if done.was_done else ""
    released = " The giver's certificate is released." if done.released else ""
    return (
        f"{taker.hostname} {record_words(done.record)} is held by {taker.client_id}"
        f" for {taker.app_id} now.{before}{released}"
    )


def forgotten_view(hostname: Hostname, forgotten: Forgotten) -> dict[str, Any]:
    """What was forgotten, for programs."""
    return {
        "hostname": hostname,
        "record": None if forgotten.record is None else forgotten.record.to_wire(),
        "challenges": [
            {"zone": debt.zone, "name": debt.name, "value": debt.value}
            for debt in forgotten.challenges
        ],
        "keepsCertificate": forgotten.keeps_certificate,
    }


def forgotten_lines(hostname: Hostname, forgotten: Forgotten) -> Iterator[str]:
    """What was forgotten, for a person, and what may be left in the zone."""
    if forgotten.record is not None:
        record = f"{forgotten.record.type} {forgotten.record.value}"
        yield f"Forgotten: {hostname} {record}. The record and its marker stay in their zone."
    for debt in forgotten.challenges:
        yield f"Forgotten: {_debt_words(debt)}. The value stays in its zone."
    if forgotten.keeps_certificate:
        yield f"Its certificate stays until it is released, or {hostname}'s client is removed."


def not_the_gateways(document: Document) -> str:
    """Why a hostname can't be given up for the gateway, and who can do it instead."""
    refusal = f"{document.hostname} is not held by the gateway itself"
    holder = document.holder
    if holder is None:
        return f"{refusal}: nobody holds it."
    return (
        f"{refusal} but by {whose_words(holder)}: that client releases it by its own"
        f" calls, or `gateway clients remove {quote(holder.client_id)} --release-holdings` all that"
        " it holds."
    )


def _held_view(document: Document) -> dict[str, Any]:
    """What is held, for programs; not `readable` where another release wrote it."""
    if not is_readable(document):
        return {"readable": False, **dict.fromkeys(_HELD)}
    certificate, issuance = certificate_of(document), issuance_of(document)
    return {
        "readable": True,
        "record": record_view(document),
        "certificateValidUntil": None if certificate is None else certificate.valid_until_ms,
        "issuance": None if issuance is None else issuance.state.value,
        "claim": claim_view(document),
    }


def _finding_view(finding: Finding) -> dict[str, Any]:
    owner, record = finding.owner, finding.record
    return {
        "hostname": finding.hostname,
        "outcome": finding.outcome.value,
        "clientId": None if owner is None else owner.client_id,
        "appId": None if owner is None else owner.app_id,
        "record": None if record is None else record.to_wire(),
        "keyIds": list(finding.key_ids),
        "markers": finding.markers,
        "detail": finding.detail,
    }


def _finding_line(finding: Finding) -> str:
    parts = [finding.hostname]
    if finding.owner is not None:
        parts.append(whose_words(finding.owner))
    if finding.record is not None:
        parts.append(record_words(finding.record))
    text = f"{finding.outcome.value}: {MEANINGS[finding.outcome]}"
    if finding.outcome is Upshot.UNKNOWN_KEY:
        text += f" ({', '.join(finding.key_ids)})"
    parts.append(text if not finding.detail else f"{text}. {finding.detail}")
    if finding.markers > 1:
        parts.append(f"{finding.markers} markers are there")
    return "  ".join(parts)


def _summary(report: ZoneReport) -> str:
    counts = Counter(finding.outcome for finding in report.findings)
    counted = [f"{counts[outcome]} {outcome.value}" for outcome in Upshot if counts[outcome]]
    if report.challenges:
        counted.append(f"{len(report.challenges)} challenge values left over")
    how = "read whole"
    if report.partial is not None:
        how = f"only {report.looked_at} known names were looked at: {report.partial}"
    if report.is_unreadable:
        how = f"not read: {report.partial}"
    elif not counted:
        counted = ["nothing of the gateway"]
    return f"zone {report.zone} ({how})" + (f": {', '.join(counted)}" if counted else "")


def claim_view(document: Document) -> dict[str, Any] | None:
    """An operator's claim on the hostname, as `gateway claims list` has it."""
    claim = document.claim
    return None if claim is None else {"since": claim["sinceMs"], "note": claim["note"]}


def record_view(document: Document) -> dict[str, Any] | None:
    """The record that Redis remembers, as on the wire, and whether it is known to be published."""
    record = remembered_record(document)
    if record is None or document.record is None:
        return None
    return {**record.to_wire(), "published": bool(document.record["published"])}


def _debt_words(debt: Debt) -> str:
    return f"{debt.name} TXT {debt.value} in the zone {debt.zone}"
