"""One sample of each thing that can happen to an issuance: what the machine is explored with.

Every type of event that the machine lists must be here, with every status that RFC 8555 knows and
every kind of fault; `exploring` fails where one is missing. The words are those of the diagram.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.certificates import events
from gateway.certificates.events import Command, Event
from gateway.certificates.orders import AuthorizationView, FaultKind, OrderView
from gateway.certificates.states import Reason, State, StoredCertificate

NOW_MS = 1_700_000_000_000
CERTIFICATE = StoredCertificate(
    issuance_id="issuance",
    chain_pem="chain",
    sealed_key="sealed",
    valid_from_ms=NOW_MS,
    valid_until_ms=NOW_MS + 9,
    renew_at_ms=NOW_MS + 5,
    renew_after_ms=NOW_MS + 6,
    share_at_ms=NOW_MS + 5,
    serial="01",
    issuer="issuer",
    directory_url="directory",
    ask_at_ms=NOW_MS + 4,
)

ORDER_STATUSES = ("pending", "ready", "processing", "valid", "invalid")
AUTHORIZATION_STATUSES = ("pending", "valid", "invalid", "deactivated", "expired", "revoked")

_OF_ONE_COMMAND = {
    FaultKind.STALE_CHALLENGE: Command.ANSWER_CHALLENGE,
    FaultKind.NOT_READY: Command.FINALIZE,
    FaultKind.BAD_CSR: Command.FINALIZE,
}


@dataclass(frozen=True)
class Sample:
    """An event and what the diagram calls it, with the condition that it adds.

    `after`: only this command can come to it; `within`: it says something of its own only there.
    """

    words: str
    event: Event
    condition: str = ""
    after: Command | None = None
    within: State | None = None


def all_samples() -> Iterator[Sample]:
    """Every sample, in the order in which labels are read."""
    yield Sample("due", events.Due())
    yield from _choosing()
    yield Sample("key made", events.KeyMade("sealed", "csr"))
    yield from _orders()
    yield from _authorizations()
    yield Sample("challenge located", events.ChallengeLocated("zone", "name"))
    yield Sample("challenge published", events.ChallengePublished())
    yield Sample("propagated", events.PropagationSeen(()))
    yield Sample("not propagated", events.PropagationSeen(("server",)))
    yield Sample("server silent", events.PropagationSeen((), ("server",), 60_000))
    yield Sample("challenge answered", events.ChallengeAnswered())
    yield Sample("certificate fetched", events.CertificateFetched(CERTIFICATE))
    yield Sample("certificate rejected", events.CertificateRejected("detail"))
    yield from _authority_faults()
    yield Sample("zone unavailable", events.ZoneFailed("detail", 5.0))
    yield Sample("zone refuses", events.ZoneFailed("detail"))
    yield Sample("fault of the gateway", events.StepBroke("incident"))


def _choosing() -> Iterator[Sample]:
    for takes_replaces in (True, False):
        yield Sample("authority chosen", events.AuthorityChosen("directory", takes_replaces))
    for reason in (Reason.RATE_LIMITED, Reason.AUTHORITY_UNAVAILABLE):
        yield Sample("authorities held", events.AuthoritiesHeld(NOW_MS + 9, reason, "detail"))


def _orders() -> Iterator[Sample]:
    for status in ORDER_STATUSES:
        yield Sample(f"order {status}", events.OrderSeen(_order(status)))
    for status in ORDER_STATUSES:
        yield Sample(f"order {status}", events.Finalized(_order(status)))
    yield Sample("order without authorization", events.OrderSeen(_order("pending", ())))


def _authorizations() -> Iterator[Sample]:
    for status in AUTHORIZATION_STATUSES:
        view = AuthorizationView("authorization", "host", status, "challenge", "txt")
        yield Sample(f"authorization {status}", events.AuthorizationSeen(view))
    bare = AuthorizationView("authorization", "host", "pending")
    yield Sample("no dns-01 offered", events.AuthorizationSeen(bare), within=State.ORDERED)


def _authority_faults() -> Iterator[Sample]:
    for kind in FaultKind:
        for elsewhere in (False, True):
            for retry_after_seconds in (None, 3600.0):
                event = events.AuthorityFailed(kind, "detail", retry_after_seconds, elsewhere)
                condition = "given another authority" if elsewhere else ""
                after = _OF_ONE_COMMAND.get(kind)
                yield Sample(kind.value.replace("-", " "), event, condition, after)


def _order(status: str, authorizations: tuple[str, ...] = ("authorization",)) -> OrderView:
    certificate_url = "certificate" if status == "valid" else None
    return OrderView("order", status, authorizations, "finalize", certificate_url)
