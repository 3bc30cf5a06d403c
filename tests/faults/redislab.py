"""What the tests of Redis's faults share: a lab on a Redis of some kind, and calls meanwhile.

Responsible for: two gateways that work, on any kind of Redis; calls that go on while Redis is gone.
Must not: break anything; the tests do.
Called by: `test_redis_*`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.faultlab import SETTLING_LIMIT_SECONDS, FaultLab, further_gateway
from tests.lab.gateway import GatewayProcess
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import wait_until
from tests.lab.redis import RedisDeployment

ANSWER_LIMIT_SECONDS = 5.0
"""What is promised while Redis is gone: a client gives up an answer that takes longer."""

UNAVAILABLE = "unavailable"
_GATEWAYS = 2


@dataclass
class Seen:
    """What calls were answered with, oldest first, and those that were not answered in time."""

    codes: list[str] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)


class RedisLab(FaultLab):
    """A lab with gateways that all answer and work, and one certificate that is there already."""

    def __init__(self, lab: Lab, gateways: Sequence[GatewayProcess]) -> None:
        super().__init__(lab, gateways[0])
        self.gateways = tuple(gateways)
        self.urls = [gateway.url for gateway in gateways]
        self.ready_hostname = self.fresh_hostname()
        self.certificates([self.ready_hostname], self.urls[0])

    def begin(self, hostnames: Sequence[str]) -> None:
        """Ask for certificates, and wait until the first order is there."""
        self.ask_for_some(hostnames, self.urls)
        self.wait_until_in_the_middle(hostnames)

    def codes(self) -> set[str]:
        """What each gateway answers now, in time, about the certificate that is there."""
        return {
            self.client.code(url, self.ready_hostname, ANSWER_LIMIT_SECONDS) for url in self.urls
        }

    @contextmanager
    def called_meanwhile(self) -> Iterator[Seen]:
        """Ask every gateway over and over, as long as the block runs."""
        seen, is_over = Seen(), threading.Event()

        def ask(url: str) -> None:
            try:
                while not is_over.is_set():
                    code = self.client.code(url, self.ready_hostname, ANSWER_LIMIT_SECONDS)
                    seen.codes.append(code)
            except Exception as fault:  # noqa: BLE001 (the test says so, in its own thread)
                seen.faults.append(fault)

        threads = [threading.Thread(target=ask, args=[url]) for url in self.urls]
        for thread in threads:
            thread.start()
        try:
            yield seen
        finally:
            is_over.set()
            for thread in threads:
                thread.join()

    def finish(self, hostnames: Sequence[str]) -> None:
        """Wait until all is well again, every certificate there, and nothing left to clean up."""
        wait_until(lambda: UNAVAILABLE not in self.codes(), "Redis is used", SETTLING_LIMIT_SECONDS)
        self.certificates(hostnames, self.urls[-1])
        self.wait_until_settled(hostnames)


@contextmanager
def running_redis_lab(
    start_redis: Callable[[Path], RedisDeployment], environ: Mapping[str, str] | None = None
) -> Iterator[RedisLab]:
    """A lab on the Redis that `start_redis` starts."""
    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(LabOptions(gateways=0, start_redis=start_redis)))
        gateways = [
            stack.enter_context(further_gateway(lab, works=True, environ=environ))
            for _ in range(_GATEWAYS)
        ]
        redis_lab = RedisLab(lab, gateways)
        stack.callback(redis_lab.client.close)
        yield redis_lab
