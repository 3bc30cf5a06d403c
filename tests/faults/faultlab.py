"""The lab of the fault tests: servers, one client, and gateways started as a test needs them.

Responsible for: keeping tests apart by hostnames, stopping what they started, and waiting, always
by condition and bounded.
Must not: judge, but for what several tests end with; the tests do.
Called by: `conftest`.
"""

import contextlib
import secrets
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.faults.client import Client
from tests.faults.doomed import DoomedGateway
from tests.faults.evidence import Evidence
from tests.faults.points import Point
from tests.integration.service.calling import NO_TLS
from tests.lab.gateway import GatewayProcess, running_gateway
from tests.lab.lab import Lab
from tests.lab.ports import free_port
from tests.lab.process import wait_until

ZONE = "example.test"
SETTLING_LIMIT_SECONDS = 90.0
_AT_ONCE = 4
_ROUNDS = 3
_DRIVE_LIMIT_SECONDS = 60.0
_DOOMED_ANSWER_SECONDS = 2.0
_PAUSE_SECONDS = 0.1


class FaultLab:
    """A lab whose one client may hold every name in the zone.

    `desk` answers calls as long as the lab runs, and never works on anything.
    """

    def __init__(self, lab: Lab, desk: GatewayProcess) -> None:
        self.lab = lab
        self.desk = desk
        self.evidence = Evidence(lab)
        self.client = Client.made_by_admin(desk.url, lab.config.admin_token, f"*.{ZONE}")

    def fresh_hostname(self) -> str:
        return f"t{secrets.token_hex(6)}.{ZONE}"

    def doomed(
        self,
        hostname: str,
        *points: Point,
        signal_number: int = signal.SIGKILL,
        trace_file: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> DoomedGateway:
        """A gateway that works on this hostname only, not started yet."""
        return DoomedGateway(
            self.lab.config,
            hostname,
            *points,
            signal_number=signal_number,
            trace_file=trace_file,
            environ=environ,
        )

    @contextmanager
    def ended_at(
        self, points: Sequence[Point], signal_number: int
    ) -> Iterator[dict[Point, DoomedGateway]]:
        """For each point a gateway that has come to it: killed, or held until the block ends.

        A point that does not come, as polls differ from run to run, is tried again; one that never
        came is left out.
        """
        ended: dict[Point, DoomedGateway] = {}
        with ExitStack() as stack:

            def come_to(point: Point) -> None:
                gateway = self.doomed(self.fresh_hostname(), point, signal_number=signal_number)
                gateway.start()
                stack.callback(gateway.kill)
                if self.drive(gateway):
                    ended[point] = gateway

            for _ in range(_ROUNDS):
                left = [point for point in points if point not in ended]
                with ThreadPoolExecutor(_AT_ONCE) as threads:
                    list(threads.map(come_to, left))
            yield {point: ended[point] for point in points if point in ended}

    def trace(self, trace_file: Path, environ: Mapping[str, str] | None = None) -> list[Point]:
        """The points that one undisturbed issuance passes, in order."""
        gateway = self.doomed(self.fresh_hostname(), trace_file=trace_file, environ=environ)
        gateway.start()
        try:
            self.drive(gateway)
        finally:
            gateway.kill()
        return [Point.from_line(line) for line in trace_file.read_text().splitlines()]

    def drive(self, gateway: DoomedGateway) -> bool:
        """Ask a doomed gateway for its certificate until it has come to its point.

        False when it has done all there was to do instead, and never came there.
        """

        def is_over() -> bool:
            if gateway.is_at_its_end:
                return True
            # No answer: it does not listen yet, or no longer, or came to its point in this call.
            with contextlib.suppress(httpx.HTTPError):
                answer = self.client.get(gateway.url, gateway.hostname, _DOOMED_ANSWER_SECONDS)
                return answer["status"] == "ready" and self._are_settled([gateway.hostname])
            return False

        wait_until(
            is_over,
            f"{gateway.hostname} comes to its end",
            _DRIVE_LIMIT_SECONDS,
            pause_seconds=_PAUSE_SECONDS,
        )
        return gateway.is_at_its_end

    def wait_until_listening(self, gateway: DoomedGateway) -> None:
        """Wait until a gateway can be called, and can reach Redis."""

        def answers() -> bool:
            with contextlib.suppress(httpx.HTTPError):
                url = f"{gateway.base_url}/readyz"
                return httpx.get(url, trust_env=False, verify=NO_TLS).status_code == httpx.codes.OK
            return False

        wait_until(answers, f"{gateway.hostname}'s gateway answers")

    @contextmanager
    def gateway(self) -> Iterator[GatewayProcess]:
        """An ordinary gateway, which works on everything, as long as the block runs."""
        with further_gateway(self.lab, works=True) as gateway:
            yield gateway

    def ask_for_some(self, hostnames: Sequence[str], urls: Sequence[str]) -> None:
        """Ask for new hostnames' certificates, all at once, at the gateways in turn.

        The CA sleeps meanwhile: else the first ones could have theirs before the last are asked
        for, or all of them before anybody looks.
        """
        asked = [urls[number % len(urls)] for number in range(len(hostnames))]
        authority = self.lab.pebble.process
        authority.pause()
        try:
            with ThreadPoolExecutor(len(hostnames)) as threads:
                list(threads.map(self.client.get, asked, hostnames))
        finally:
            authority.resume()

    def wait_until_in_the_middle(self, hostnames: Iterable[str]) -> None:
        """Wait until the first order is there."""
        names = list(hostnames)
        wait_until(
            lambda: any(
                each.certificate or (each.issuance or {}).get("order_url")
                for each in self.evidence.documents(names).values()
            ),
            "an order is under way",
            SETTLING_LIMIT_SECONDS,
        )

    def under_way(self, hostnames: Iterable[str]) -> int:
        """How many of these issuances have not ended."""
        documents = self.evidence.documents(hostnames).values()
        return len([each for each in documents if each.issuance is not None])

    def certificates(self, hostnames: Iterable[str], url: str) -> dict[str, dict[str, Any]]:
        """The certificate of each hostname, asked for at one gateway until all are there."""
        ready: dict[str, dict[str, Any]] = {}

        def is_ready(hostname: str) -> bool:
            answer = self.client.get(url, hostname)
            if answer["status"] == "ready":
                ready[hostname] = answer["certificate"]
            return hostname in ready

        waiting = [hostname for hostname in hostnames if not is_ready(hostname)]
        _wait_for_each(waiting, is_ready, "all certificates are ready")
        return ready

    def wait_until_issued(self, hostnames: Iterable[str]) -> None:
        """Wait until every certificate is stored, whoever asked for it."""
        _wait_for_each(
            hostnames,
            lambda name: self.evidence.documents([name])[name].certificate is not None,
            "all are issued",
        )

    def wait_until_settled(self, hostnames: Iterable[str]) -> None:
        """Wait until no hostname has work under way or anything left to clean up."""
        names = list(hostnames)
        _wait_for_each(names, lambda name: self._are_settled([name]), "all debts are paid")
        wait_until(lambda: self._are_settled(names), "all debts are paid", SETTLING_LIMIT_SECONDS)

    def _are_settled(self, hostnames: list[str]) -> bool:
        documents = self.evidence.documents(hostnames).values()
        return not any(each.issuance or each.debts or each.lease for each in documents)

    def assert_each_ordered_once(self, hostnames: Collection[str]) -> None:
        """One order for each hostname, which a gateway stored, is valid, and left no challenge."""
        orders = self.evidence.orders(hostnames)
        assert sorted(order.hostname for order in orders) == sorted(hostnames)
        assert {order.url for order in orders} <= self.evidence.stored_order_urls()
        assert {order.status for order in orders} == {"valid"}
        left = {f"_acme-challenge.{hostname}" for hostname in hostnames}
        assert not left & self.evidence.challenge_names()


def _wait_for_each(hostnames: Iterable[str], holds: Callable[[str], bool], what: str) -> None:
    """Wait until it held for each: only the first that is left is looked at again and again.

    To look at hundreds in every round would take the processor from those that do the work.
    """
    left = list(hostnames)

    def is_over() -> bool:
        while left and holds(left[0]):
            del left[0]
        return not left

    wait_until(is_over, what, SETTLING_LIMIT_SECONDS, pause_seconds=_PAUSE_SECONDS)


@contextmanager
def further_gateway(
    lab: Lab, *, works: bool, environ: Mapping[str, str] | None = None
) -> Iterator[GatewayProcess]:
    """A further gateway of a lab, with or without a worker, as long as the block runs."""
    name = f"gateway-{secrets.token_hex(4)}"
    environ = {"GATEWAY_WORKER__ENABLED": str(works).lower(), **(environ or {})}
    with running_gateway(lab.config, name, port=free_port(), environ=environ) as gateway:
        yield gateway
