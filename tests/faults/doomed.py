"""Starts gateways that are to die or stop at a point, and says what became of them.

Responsible for: forking them (`tests.lab.forks`) and asking after them.
Must not: know why a point matters.
Called by: the tests of this package, through `faultlab`.
"""

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.faults import dying
from tests.faults.dying import Errand
from tests.faults.points import Point
from tests.lab.forks import Fork
from tests.lab.gateway import GatewayConfig
from tests.lab.ports import LOOPBACK, free_port

_DEATH_LIMIT_SECONDS = 10.0


class DoomedGateway:
    """`gateway serve` for one hostname, on a port of its own, with a log of its own.

    At each of the points it sends itself the signal; without any it lives until it is killed.
    """

    def __init__(
        self,
        config: GatewayConfig,
        hostname: str,
        *points: Point,
        signal_number: int = signal.SIGKILL,
        trace_file: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.hostname = hostname
        port = free_port()
        self.base_url = f"http://{LOOPBACK}:{port}"
        self.url = f"{self.base_url}/typedrequest"
        self.log_file = config.config_file.with_name(f"{hostname}-{port}.log")
        listen = {"GATEWAY_HTTP__LISTEN": f"{LOOPBACK}:{port}"}
        errand = Errand(
            arguments=("serve", "--config", str(config.config_file)),
            log_file=self.log_file,
            hostname=hostname,
            points=frozenset(points),
            signal_number=signal_number,
            trace_file=trace_file,
            environ={**listen, **(environ or {})},
        )
        self._process = Fork(dying.run, errand)

    def start(self) -> None:
        self._process.start()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def was_killed(self) -> bool:
        """Whether it ended by SIGKILL, not in any other way."""
        return self._process.poll() == -signal.SIGKILL

    @property
    def is_at_its_end(self) -> bool:
        """Whether it was killed or is held."""
        return self.has_ended or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether SIGSTOP holds it."""
        if not self._process.has_begun:
            return False
        try:
            status = Path(f"/proc/{self._process.pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            return False
        # The state follows the command in parentheses, which may itself hold anything.
        return status.rpartition(")")[2].split()[0] == "T"

    def resume(self) -> None:
        """Let it go on after SIGSTOP; one that is stopped keeps its process id."""
        if self._process.has_begun and self.is_stopped:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it. May be repeated."""
        if self._process.has_begun:
            self._process.kill()
            self._process.wait(_DEATH_LIMIT_SECONDS)

    def has_logged(self, text: str) -> bool:
        return text in self.log_file.read_text(errors="replace")
