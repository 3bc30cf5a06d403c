"""Where each certificate stands, since when, why, and what is next, in words: pure.

`certificates.outlook` knows what is next. Shows no key. Called by `cli.issuances`, the page and
`explanation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates.outlook import authority_name, debt_words
from gateway.views.holdings import whose_words
from gateway.views.times import duration, time_and_age, time_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.certificates.outlook import Outlook
    from gateway.certificates.states import Issuance, StoredCertificate

OVERDUE_MS: Final = 5_000


def line(found: Outlook, now_ms: int) -> str:
    """All that matters in one line; `now_ms` are epoch milliseconds, as everywhere here."""
    issuance = found.issuance
    parts = [f"{found.document.hostname}  {found.state}{_age_words(found, now_ms)}"]
    if issuance is not None and issuance.reason is not None:
        parts.append(f"{issuance.reason.value}: {issuance.message}")
    elif issuance is not None and issuance.message is not None:
        parts.append(issuance.message)
    if found.issuance is None and found.certificate is not None:
        parts.append(f"valid until {time_words(found.certificate.valid_until_ms)}")
    working = found.worker is not None
    parts.append(f"being worked on by {found.worker}" if working else next_words(found, now_ms))
    if issuance is not None and issuance.told_until_ms is not None:
        parts.append(f"held until {time_words(issuance.told_until_ms)}")
    return "; ".join(parts)


def _age_words(found: Outlook, now_ms: int) -> str:
    """How long it is wanted, and how long its last attempt goes on."""
    issuance = found.issuance
    if issuance is None:
        return "" if found.since_ms is None else f" for {duration(now_ms - found.since_ms)}"
    wanted = f", wanted for {duration(now_ms - issuance.since_ms)}"
    if issuance.begun_at_ms == issuance.since_ms:
        return wanted
    return f"{wanted}, this attempt for {duration(now_ms - issuance.begun_at_ms)}"


def next_words(found: Outlook, now_ms: int) -> str:
    """What is to be done next, and in how long, or since when nobody does it."""
    if found.next is None:
        return "nothing is to be done"
    what, late_ms = found.next.what, now_ms - found.next.at_ms
    if found.denied is not None and found.next.is_order:
        when = f"in {duration(-late_ms)}" if late_ms < 0 else "now"
        return f"no new certificate is ordered, since {found.denied}; looked at again {when}"
    if late_ms > OVERDUE_MS and found.worker is None:
        return f"{what}, due since {duration(late_ms)}: no worker has taken it up"
    return f"{what}, now" if late_ms >= 0 else f"{what}, in {duration(-late_ms)}"


def rows(found: Outlook, names: Mapping[str, str], now_ms: int) -> Iterator[tuple[str, str]]:
    """All that is known, as labels and texts for a person; `names` are the authorities'."""
    document = found.document
    yield "hostname", document.hostname
    if document.holder is not None:
        yield "held by", whose_words(document.holder)
    issuance = found.issuance
    since = found.since_ms if issuance is None else issuance.changed_at_ms
    yield "state", found.state + ("" if since is None else f" since {time_and_age(since, now_ms)}")
    if issuance is not None:
        yield from _issuance_rows(issuance, names, now_ms)
    yield "next", next_words(found, now_ms)
    if found.next is not None and found.next.at_ms > now_ms:
        yield "at", time_words(found.next.at_ms)
    if found.worker is not None:
        yield "worked on by", f"{found.worker} (fencing number {document.fence})"
    if found.certificate is not None:
        yield from _certificate_rows(found.certificate, names, now_ms)
    yield from _debt_rows(found, now_ms)


def _issuance_rows(
    issuance: Issuance, names: Mapping[str, str], now_ms: int
) -> Iterator[tuple[str, str]]:
    yield from reason_rows(issuance)
    yield "kind", "renewal" if issuance.renewal else "first certificate"
    yield "wanted since", time_and_age(issuance.since_ms, now_ms)
    if issuance.begun_at_ms != issuance.since_ms:
        yield "this attempt", time_and_age(issuance.begun_at_ms, now_ms)
    if issuance.directory_url is not None:
        yield "authority", authority_name(issuance.directory_url, names)
    elif issuance.failed_at:
        yield "failed at", authority_name(issuance.failed_at, names)
    for url, until_ms in issuance.passed_over.items():
        if until_ms > now_ms:
            name = authority_name(url, names)
            yield "passed over", f"{name} until {time_words(until_ms)}"
    if issuance.order_url is not None:
        yield "order", issuance.order_url
    if issuance.challenge_name is not None:
        yield "challenge", f"{issuance.challenge_name} TXT {issuance.challenge_value or '(done)'}"
    yield from _count_rows(issuance)


def reason_rows(issuance: Issuance) -> Iterator[tuple[str, str]]:
    """Why it waits or failed, in the words of the authority or the zone."""
    if issuance.reason is not None:
        yield "why", f"{issuance.reason.value}: {issuance.message}"
    elif issuance.message is not None:
        yield "why", issuance.message
    if issuance.told_until_ms is not None:
        yield "held until", time_words(issuance.told_until_ms)
    if issuance.resume is not None:
        yield "goes on as", issuance.resume.value


def _count_rows(issuance: Issuance) -> Iterator[tuple[str, str]]:
    if issuance.failures:
        yield "failures", f"{counted(issuance.failures, 'order')} came to nothing"
    if issuance.faults:
        yield "faults", f"{counted(issuance.faults, 'passing fault')} in a row"


def _certificate_rows(
    certificate: StoredCertificate, names: Mapping[str, str], now_ms: int
) -> Iterator[tuple[str, str]]:
    is_valid = certificate.may_be_served_at(now_ms)
    until = time_words(certificate.valid_until_ms)
    left = duration(abs(certificate.valid_until_ms - now_ms))
    yield "certificate", f"serial {certificate.serial}, {certificate.issuer}"
    yield "from", authority_name(certificate.directory_url, names)
    yield "valid until", f"{until} ({'in ' + left if is_valid else 'expired ' + left + ' ago'})"
    yield "renewal at", time_words(certificate.renew_at_ms)
    if certificate.window_ms is not None:
        start_ms, end_ms = certificate.window_ms
        yield (
            "window",
            f"{time_words(start_ms)} to {time_words(end_ms)}, as the authority suggests;"
            f" renewal times asked again at {time_words(certificate.ask_at_ms)}",
        )


def _debt_rows(found: Outlook, now_ms: int) -> Iterator[tuple[str, str]]:
    for debt in found.debts:
        pause_ms = debt.due_at_ms - now_ms
        when = f", next try in {duration(pause_ms)}" if pause_ms > 0 else ""
        yield "to clean up", f"{debt_words(debt)} (tried {counted(debt.tries, 'time')}{when})"


def counted(count: int, thing: str) -> str:
    """A number of things."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
