"""Released in any state: nothing of it comes back, and a get directly after starts anew.

The gateway at work stops itself (SIGSTOP) where it has just stored the state, or, if a fast CA has
it pass through the state without that, where it does the next step. The release and the get go to
another one. In the end the first goes on (SIGCONT), with an issuance that is no more.
"""

import base64
import signal
from collections.abc import Collection, Iterator
from dataclasses import replace

import pytest
from cryptography import x509

from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.events import Command
from gateway.certificates.states import State
from gateway.store.documents import Document
from tests.faults.doomed import DoomedGateway
from tests.faults.evidence import Order, public_key
from tests.faults.faultlab import SETTLING_LIMIT_SECONDS, FaultLab
from tests.faults.points import AFTER, BEFORE, STEP, Point, stored
from tests.integration.dns.hand import Hand
from tests.lab.process import wait_until

GAVE_UP = "work given up"
AT_REST = {State.ISSUED, State.WAITING, State.FAILED}
"""The states stored with the lease handed back: nothing is under way that could be given up."""

PASSED_THROUGH = {
    State.PUBLISHED: (Command.CHECK_PROPAGATION, State.ORDERED),
    State.FINALIZING: (Command.FETCH_CERTIFICATE, State.READY),
}
"""States that are not stored: which step comes next, and what Redis knows by then."""


@pytest.fixture
def other(fault_lab: FaultLab) -> Iterator[DoomedGateway]:
    """A gateway that lives, for a hostname of its own."""
    gateway = fault_lab.doomed(fault_lab.fresh_hostname())
    yield gateway
    gateway.kill()


@pytest.fixture
def stopped(
    fault_lab: FaultLab, hand: Hand, other: DoomedGateway, state: State
) -> Iterator[DoomedGateway]:
    """A gateway for the same hostname, stopped where it has stored the state."""
    points = _stopping_points(state)
    gateway = fault_lab.doomed(other.hostname, *points, signal_number=signal.SIGSTOP)
    if state is State.FAILED:
        hand.add(_alias(other.hostname))
    try:
        gateway.start()
        assert fault_lab.drive(gateway)
        if state is State.WAITING:
            hand.add(_alias(other.hostname))
            gateway.resume()
            assert fault_lab.drive(gateway)
        yield gateway
    finally:
        gateway.kill()


def _stopping_points(state: State) -> list[Point]:
    if state is State.REQUESTED:
        # The first time it is stored by the call that asks for it, the second time with its key.
        return [stored(state, 2)]
    if state is State.WAITING:
        # The challenge's name becomes an alias between the two.
        return [Point(f"{Command.PUBLISH_CHALLENGE} 1", STEP, 1, BEFORE), stored(state)]
    if state is State.ISSUED:
        # Stored as a certificate, without an issuance.
        return [Point(f"after {Command.FETCH_CERTIFICATE} 1", "redis.commit", 1, AFTER)]
    if state in PASSED_THROUGH:
        return [Point(f"{PASSED_THROUGH[state][0]} 1", STEP, 1, BEFORE)]
    return [stored(state)]


def _alias(hostname: str) -> str:
    return f"_acme-challenge.{hostname} 60 CNAME nowhere.invalid."


@pytest.mark.parametrize("state", list(State))
def test_release_leaves_nothing_and_a_get_directly_after_starts_anew(
    fault_lab: FaultLab, hand: Hand, stopped: DoomedGateway, other: DoomedGateway, state: State
) -> None:
    hostname = other.hostname
    before = _document(fault_lab, hostname)
    assert _state_of(before) is PASSED_THROUGH.get(state, (None, state))[1]
    other.start()
    fault_lab.wait_until_listening(other)
    assert fault_lab.client.release(other.url, hostname) == "released"
    if state in {State.WAITING, State.FAILED}:
        hand.update(f"delete _acme-challenge.{hostname} CNAME")
    certificate = fault_lab.certificates([hostname], other.url)[hostname]
    assert public_key(certificate["chainPem"]) != _key_in(before)
    fault_lab.wait_until_settled([hostname])
    orders = _assert_nothing_is_left(fault_lab, hostname)
    assert len(orders) >= 1
    anew = _document(fault_lab, hostname)

    stopped.resume()
    if state not in AT_REST:
        wait_until(lambda: stopped.has_logged(GAVE_UP), "it gives up", SETTLING_LIMIT_SECONDS)
    assert fault_lab.client.get(stopped.url, hostname)["certificate"] == certificate
    fault_lab.wait_until_settled([hostname])
    _assert_nothing_is_left(fault_lab, hostname, besides=orders)
    at_the_end = _document(fault_lab, hostname)
    assert replace(at_the_end, version=anew.version, fence=anew.fence) == anew


def _assert_nothing_is_left(
    fault_lab: FaultLab, hostname: str, *, besides: Collection[Order] = ()
) -> list[Order]:
    assert f"_acme-challenge.{hostname}" not in fault_lab.evidence.challenge_names()
    orders = fault_lab.evidence.orders([hostname], besides=besides)
    assert not [order for order in orders if order.authorization_status == "pending"]
    return orders


def _document(fault_lab: FaultLab, hostname: str) -> Document:
    return fault_lab.evidence.documents([hostname])[hostname]


def _state_of(document: Document) -> State:
    issuance = issuance_of(document)
    return State.ISSUED if issuance is None else issuance.state


def _key_in(document: Document) -> bytes | None:
    """The public key of the issuance or the certificate; None after a failure, when it is gone."""
    issuance, certificate = issuance_of(document), certificate_of(document)
    if certificate is not None:
        return public_key(certificate.chain_pem)
    assert issuance is not None
    if issuance.csr is None:
        return None
    return public_key(x509.load_der_x509_csr(base64.b64decode(issuance.csr)))


def test_released_right_before_its_challenge_goes_out_nothing_is_left_of_that(
    fault_lab: FaultLab, other: DoomedGateway
) -> None:
    """The record's debt is paid before there is a record: what comes of the step is a new one."""
    other.start()
    fault_lab.wait_until_listening(other)
    publishes = Point(f"{Command.PUBLISH_CHALLENGE} 1", STEP, 1, BEFORE)
    gateway = fault_lab.doomed(other.hostname, publishes, signal_number=signal.SIGSTOP)
    try:
        gateway.start()
        assert fault_lab.drive(gateway)
        assert fault_lab.client.release(other.url, other.hostname) == "released"
        fault_lab.wait_until_settled([other.hostname])
        gateway.resume()
        wait_until(lambda: gateway.has_logged(GAVE_UP), "it gives up", SETTLING_LIMIT_SECONDS)
        fault_lab.wait_until_settled([other.hostname])
    finally:
        gateway.kill()
    _assert_nothing_is_left(fault_lab, other.hostname)
