"""Makes calls with the ecosystem's own client: one Node.js process, as long-lived as a client's.

Responsible for: starting `tests/npm/driver.mjs`, one call after the other, each bounded in time.
Must not: judge an outcome; it hands on what the client made of the gateway's answer.
Called by: tests that show what a real client sees.
"""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.process import STOP_LIMIT_SECONDS, LabFault, find_program

_FOLDER = Path(__file__).parents[1] / "npm"
# The driver gives a call up before.
_OUTCOME_LIMIT_SECONDS = 30.0
_CHUNK_BYTES = 65536


@dataclass(frozen=True)
class Outcome:
    """What a call came to in the client: one of the three, the others are None.

    `response` is what it resolved to, `error_text` with `error_data` a `TypedResponseError`,
    `thrown` any other exception: no answer was had. Resolved to nothing, all are None.
    """

    response: dict[str, Any] | None = None
    error_text: str | None = None
    error_data: dict[str, Any] | None = None
    thrown: str | None = None


class NpmClient:
    """The running client. Everything it remembers between calls lives as long as this."""

    def __init__(self, log_file: Path, environ: Mapping[str, str] | None = None) -> None:
        """Start it; what it says on its console goes to `log_file`. `environ` is Node.js's.

        Raises: LabFault when Node.js or the npm packages are missing.
        """
        if not (_FOLDER / "node_modules").is_dir():
            raise LabFault("tests/npm/node_modules is missing: run scripts/setup")
        node = find_program("node", "nodejs")
        setpriv = find_program("setpriv", "util-linux")
        self._log_file = log_file
        with log_file.open("ab") as log:
            self._child = subprocess.Popen(
                [setpriv, "--pdeathsig", "KILL", "--", node, "driver.mjs"],
                cwd=_FOLDER,
                # Proxies and options for Node.js are the machine's, not the lab's.
                env={"PATH": os.environ.get("PATH", ""), **(environ or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                process_group=0,
            )
        self._unread = b""

    def call(
        self, url: str, method: str, request: Mapping[str, object], *, use_cache: bool = False
    ) -> Outcome:
        """Call as a user of the library does; `use_cache` is its own second argument of `fire`."""
        self.begin(url, method, request, use_cache=use_cache)
        return self.outcome()

    def call_as_stream(self, url: str, request: Mapping[str, object]) -> Outcome:
        """Send what the library itself sends for a stream: without a correlation."""
        self._write(url=url, method="##VirtualStream##", request=request, asStream=True)
        return self.outcome()

    def begin(
        self, url: str, method: str, request: Mapping[str, object], *, use_cache: bool = False
    ) -> None:
        """Send a call and do not wait: `outcome` tells what it came to."""
        self._write(url=url, method=method, request=request, useCache=use_cache)

    def outcome(self) -> Outcome:
        """What the oldest call without an outcome came to.

        Raises: LabFault when the process ended, or takes too long.
        """
        outcome = json.loads(self._read_line())
        return Outcome(
            outcome.get("response"),
            outcome.get("errorText"),
            outcome.get("errorData"),
            outcome.get("thrown"),
        )

    def stop(self) -> None:
        """End it. May be repeated."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._child.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _write(self, **call: object) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(f"{json.dumps(call)}\n".encode())
        except BrokenPipeError:
            raise self._fault("ended") from None

    def _read_line(self) -> bytes:
        assert self._child.stdout is not None
        end = time.monotonic() + _OUTCOME_LIMIT_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(end - time.monotonic()):
                    raise self._fault(f"gave no outcome within {_OUTCOME_LIMIT_SECONDS:g} s")
                chunk = os.read(self._child.stdout.fileno(), _CHUNK_BYTES)
                if not chunk:
                    raise self._fault("ended")
                self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _fault(self, what: str) -> LabFault:
        said = self._log_file.read_text(errors="replace")[-2000:]
        return LabFault(f"the npm client {what}\n--- end of {self._log_file}\n{said}")
