"""The words of `gateway client`: what a person reads of an answer. Pure.

Responsible for lines without colours and without an end; whoever prints them escapes what could
steer a terminal. Must not: show a private key, but for the lines that were asked for by name. Used
by the modules of `gateway client`; by `gateway clients` and `gateway agent check`, which have some
words alike.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from gateway.contract import AdminContext
from gateway.moments import moment_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gateway.client import (
        Bundle,
        Certificate,
        ClientContext,
        GatewayCapabilities,
        Pending,
        Refused,
        ReleaseResponse,
        SyncDnsRecordResponse,
    )
    from gateway.contract import ConflictingRecord

_DONE: Final = {
    "managed-created": "published",
    "managed-updated": "replaced",
    "managed-unchanged": "unchanged",
    "managed-deleted": "done",
}
_TITLES: Final = ("NAME", "TTL", "TYPE", "VALUE")
_UNITS: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
_COLUMN: Final = 12


def context_lines(context: ClientContext | AdminContext) -> Iterator[str]:
    """Who the caller is, and what it may ask for."""
    if isinstance(context, AdminContext):
        yield _row("role", "admin: the operator, who provisions clients and holds no hostnames")
        return
    yield _row("role", context.role)
    yield _row("client", f"{context.client_id} ({context.client_type})")
    yield _row("credential", context.credential_id)
    yield _row("generation", str(context.policy_generation))
    wire = context.to_wire()
    yield _row("hostnames", _listed(wire["hostnamePatterns"]))
    yield _row("addresses", _listed(wire["allowedDnsRecordAddresses"]))
    yield _row("capabilities", _listed(wire["capabilities"]))


def capability_lines(capabilities: GatewayCapabilities) -> Iterator[str]:
    """What the gateway is set up to do."""
    yield _row("records", _can(is_able=capabilities.dns.client_records))
    yield _row("certificates", _can(is_able=capabilities.certificates.exact_issuance))


def is_done(answer: SyncDnsRecordResponse) -> bool:
    """Whether the zone holds what was asked for."""
    return answer.status in _DONE


def record_lines(answer: SyncDnsRecordResponse) -> Iterator[str]:
    """What became of a record; of a conflict its evidence, and in each case what to do next."""
    record = answer.record
    if is_done(answer):
        # Without a record, only the gateway's sentence tells whether there was one to withdraw.
        what = f": {answer.message}"
        if record is not None:
            what = f"  {record.ttl}  {record.type}  {record.value}"
        yield f"{_DONE[answer.status]}  {answer.hostname}{what}"
        return
    yield f"{answer.status}  {answer.hostname}: {answer.message}"
    if answer.conflicting_records:
        yield "Found at the name:"
        yield from _table(answer.conflicting_records)
    yield _after_refused_record(answer)


def _after_refused_record(answer: SyncDnsRecordResponse) -> str:
    if answer.status == "target-invalid":
        return (
            "`gateway client context` shows the addresses that are allowed; the operator adds to"
            " them with `gateway clients ensure`."
        )
    if answer.status == "record-conflict":
        found = "" if answer.conflicting_records else "No DNS record is in the way. "
        return f"{found}{_operator_sees_more(answer.hostname)}"
    return _when_again(answer.hostname, answer.retry_after_ms)


def certificate_lines(certificate: Certificate, bundle: Bundle, now: datetime) -> Iterator[str]:
    """A certificate without its chain and key; `now` is aware."""
    left = seconds_words((bundle.not_after - now).total_seconds())
    yield _row("status", "ready")
    yield _row("hostname", bundle.hostname)
    yield _row("valid from", moment_words(bundle.not_before))
    yield _row("valid until", f"{moment_words(bundle.not_after)} (in {left})")
    yield _row("renew after", moment_words(_moment(certificate.renew_after)))
    yield _row("serial", f"{bundle.serial_number:x}")
    yield _row("sha256", bundle.fingerprint)


def certificate_view(
    certificate: Certificate,
    bundle: Bundle,
    *,
    with_key: bool,
    files: Mapping[str, str] | None,
) -> dict[str, Any]:
    """A certificate for programs: the contract's answer, and what was made of it.

    The private key is null unless it was asked for.
    """
    wire = certificate.to_wire()
    if not with_key:
        wire["privateKeyPem"] = None
    return {
        "status": "ready",
        "certificate": wire,
        "fingerprint": bundle.fingerprint,
        "files": None if files is None else dict(files),
    }


def pending_lines(answer: Pending | Refused, hostname: str) -> Iterator[str]:
    """Why there is no certificate now, and what to do next."""
    if answer.status == "pending":
        yield f"pending  {hostname}: its issuance is under way."
        yield (
            f"Ask again in {seconds_words(answer.retry_after_ms / 1000)}, or let"
            " `gateway client certificate wait` do so."
        )
        return
    yield f"refused  {hostname} ({answer.reason}): {answer.message}"
    yield _when_again(hostname, answer.retry_after_ms)


def release_line(answer: ReleaseResponse, hostname: str) -> str:
    """What became of a release."""
    if answer.status == "released":
        return f"released  {hostname}: the certificate and its key are gone from the gateway."
    return f"unchanged  {hostname}: there was nothing to release for this application."


def seconds_words(seconds: float) -> str:
    """A span of time in the largest unit of which there are two or more."""
    for unit, word in _UNITS:
        if seconds >= 2 * unit:
            return f"{int(seconds // unit)} {word}"
    return f"{max(seconds, 0):.0f} s" if seconds >= 10 else f"{max(seconds, 0):.1f} s"


def begun(phrase: str) -> str:
    """The phrase with a capital letter, and without the full stop that it may have."""
    return phrase[:1].upper() + phrase[1:].removesuffix(".")


def in_own_words(violation: str, options: Mapping[str, str]) -> str:
    """A violation of the wire's request in the words of the command line."""
    for wire, option in options.items():
        violation = violation.replace(wire, option)
    return violation


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _row(name: str, value: str) -> str:
    return f"{name:<{_COLUMN}} {value}"


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or "none"


def _can(*, is_able: bool) -> str:
    return "yes" if is_able else "no: not set up on this gateway"


def _table(records: Sequence[ConflictingRecord]) -> Iterator[str]:
    rows = [_TITLES, *((each.name, str(each.ttl), each.type, each.value) for each in records)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join(["", *cells, row[-1]])


def _when_again(hostname: str, retry_after_ms: int | None) -> str:
    if retry_after_ms is None:
        return f"Asking again is no use until that changes. {_operator_sees_more(hostname)}"
    return f"Run the same again in {seconds_words(retry_after_ms / 1000)}; that does no harm."


def _operator_sees_more(hostname: str) -> str:
    return f"The operator sees more with `gateway explain {hostname}`."
