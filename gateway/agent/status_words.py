"""The words and the JSON of `gateway agent status`: pure.

Shows no secret. Called by `gateway.cli.agent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.agent.clocks import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, moment
from gateway.agent.status import last_contact_ms, summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.agent.running import Holder
    from gateway.agent.status import (
        CertificateStatus,
        Complaint,
        HookStatus,
        OwnershipStatus,
        RecordStatus,
    )

_UNITS: Final = (
    (2 * MINUTE_MS, SECOND_MS, "s"),
    (2 * HOUR_MS, MINUTE_MS, "min"),
    (2 * DAY_MS, HOUR_MS, "h"),
)
_LABELS: Final = ("record", "certificate", "files", "renewal", "hook", "memory")
_WIDTH: Final = max(map(len, _LABELS))


def distance(at_ms: int, now_ms: int) -> str:
    """How far a moment is from now, in whole units: `in 41 d`, `3 h ago`, `now`."""
    apart = abs(at_ms - now_ms)
    limit_unit = ((unit, word) for limit, unit, word in _UNITS if apart < limit)
    unit, word = next(limit_unit, (DAY_MS, "d"))
    count = apart // unit
    if not count:
        return "now"
    return f"in {count} {word}" if at_ms > now_ms else f"{count} {word} ago"


def lines(statuses: Sequence[OwnershipStatus], now_ms: int) -> Iterator[str]:
    """All of it for a person: a paragraph for each hostname, then the whole in one line."""
    for status in statuses:
        yield from _paragraph(status, now_ms)
        yield ""
    contact = last_contact_ms(statuses)
    since = "never" if contact is None else _when(contact, now_ms)
    yield f"In all: {summary(statuses)}. The gateway last did what was asked: {since}."


def agent_line(holder: Holder | str | None) -> str:
    """Whether an agent runs, for a person; a text says why that is not known."""
    if isinstance(holder, str):
        return f"Agent: not known whether it runs: {holder}."
    return "Agent: not running." if holder is None else f"Agent: running, {holder}."


def view(
    statuses: Sequence[OwnershipStatus], now_ms: int, holder: Holder | str | None
) -> dict[str, Any]:
    """All of it for programs; times are epoch milliseconds, as on the wire."""
    return {
        "now": now_ms,
        "agent": _agent_view(holder),
        "current": all(status.is_current for status in statuses),
        "lastContact": last_contact_ms(statuses),
        "ownerships": [_ownership_view(status) for status in statuses],
    }


def _agent_view(holder: Holder | str | None) -> dict[str, Any]:
    """`running` is null where nobody knows."""
    if isinstance(holder, str):
        return {"running": None, "pid": None, "fault": holder}
    pid = None if holder is None else holder.pid
    return {"running": holder is not None, "pid": pid, "fault": None}


def _paragraph(status: OwnershipStatus, now_ms: int) -> Iterator[str]:
    state = "" if status.is_current else "  (not current)"
    yield f"{status.hostname}  {status.app_id}{state}"
    if status.record is not None:
        yield from _labelled("record", _record_words(status.record, now_ms))
    if status.certificate is not None:
        yield from _certificate_lines(status.certificate, now_ms)
    if status.forgotten is not None:
        yield from _labelled("memory", [f"nothing: {status.forgotten}"])


def _labelled(label: str, texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"  {label if number == 0 else '':{_WIDTH}}  {text}"


def _record_words(record: RecordStatus, now_ms: int) -> list[str]:
    published = record.published
    if published is None:
        texts = [f"never published; {record.source}"]
    else:
        texts = [f"{published.type} {published.value}, TTL {published.ttl} s; {record.source}"]
        if record.published_at_ms is not None:
            texts.append(f"last published {_when(record.published_at_ms, now_ms)}")
    wanted = record.wanted
    if wanted is not None and wanted != published:
        texts.append(f"wanted: {wanted.type} {wanted.value}, TTL {wanted.ttl} s")
    return texts + _fault_words(record.fault, now_ms) + _overdue_words(record.overdue)


def _certificate_lines(certificate: CertificateStatus, now_ms: int) -> Iterator[str]:
    not_after_ms = certificate.not_after_ms
    dated = [] if not_after_ms is None else [f"valid until {_when(not_after_ms, now_ms)}"]
    unusable = [] if certificate.unusable is None else [f"not usable: {certificate.unusable}"]
    withheld = [] if certificate.is_key_read else ["the key cannot be read by this user"]
    awaited = [] if certificate.awaits is None else [f"under way: {certificate.awaits}"]
    faults = _fault_words(certificate.fault, now_ms)
    yield from _labelled("certificate", unusable + dated + withheld + awaited + faults)
    if certificate.version is not None:
        files = [f"{certificate.live}, version {certificate.version}"]
        if not certificate.has_access:
            files.append("another owner, group, mode or combined.pem than the configuration has")
        yield from _labelled("files", files)
    asks = [
        f"{word} {_when(at_ms, now_ms)}"
        for word, at_ms in (
            ("due", certificate.renew_after_ms),
            ("the gateway is asked next", certificate.next_ask_ms),
        )
        if at_ms is not None
    ]
    yield from _labelled("renewal", asks + _overdue_words(certificate.overdue))
    if certificate.hook is not None:
        yield from _labelled("hook", _hook_words(certificate.hook, certificate.version, now_ms))


def _hook_words(hook: HookStatus, version: str | None, now_ms: int) -> list[str]:
    if hook.is_done and hook.fault is None:
        return [f"has run for version {version}"]
    if version is None:
        return ["nothing to run it for yet"]
    tries = f"failed {hook.tries} times" if hook.tries > 1 else "failed once"
    said = tries if hook.fault is not None else "still to be run"
    return [f"{said} for version {version}", *_fault_words(hook.fault, now_ms)]


def _fault_words(fault: Complaint | None, now_ms: int) -> list[str]:
    if fault is None:
        return []
    since = "" if fault.since_ms is None else f" (since {moment(fault.since_ms)}, "
    since += "" if fault.since_ms is None else f"{distance(fault.since_ms, now_ms)})"
    return [f"fault: {fault.sentence}{since}"]


def _overdue_words(overdue: str | None) -> list[str]:
    return [] if overdue is None else [f"overdue: {overdue}"]


def _when(at_ms: int, now_ms: int) -> str:
    return f"{moment(at_ms)}, {distance(at_ms, now_ms)}"


def _ownership_view(status: OwnershipStatus) -> dict[str, Any]:
    return {
        "appId": status.app_id,
        "hostname": status.hostname,
        "current": status.is_current,
        "record": status.record and _record_view(status.record),
        "certificate": status.certificate and _certificate_view(status.certificate),
        "memoryFault": status.forgotten,
    }


def _record_view(record: RecordStatus) -> dict[str, Any]:
    return {
        "current": record.is_current,
        "source": record.source,
        "wanted": record.wanted and record.wanted.to_wire(),
        "published": record.published and record.published.to_wire(),
        "publishedAt": record.published_at_ms,
        "fault": _fault_view(record.fault),
        "overdue": record.overdue,
    }


def _certificate_view(certificate: CertificateStatus) -> dict[str, Any]:
    hook = certificate.hook
    return {
        "current": certificate.is_current,
        "usable": certificate.is_usable,
        "unusable": certificate.unusable,
        "keyRead": certificate.is_key_read,
        "filesAsConfigured": certificate.has_access,
        "live": str(certificate.live),
        "version": certificate.version,
        "fingerprint": certificate.fingerprint,
        "validFrom": certificate.not_before_ms,
        "validUntil": certificate.not_after_ms,
        "renewAfter": certificate.renew_after_ms,
        "answeredAt": certificate.answered_at_ms,
        "nextAsk": certificate.next_ask_ms,
        "awaits": certificate.awaits,
        "fault": _fault_view(certificate.fault),
        "overdue": certificate.overdue,
        "hook": None
        if hook is None
        else {"done": hook.is_done, "tries": hook.tries, "fault": _fault_view(hook.fault)},
    }


def _fault_view(fault: Complaint | None) -> dict[str, Any] | None:
    return None if fault is None else {"sentence": fault.sentence, "since": fault.since_ms}
