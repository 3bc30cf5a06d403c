"""A gateway that dies or stops at exact points. Runs in a process of its own.

Responsible for: the product's own `gateway serve`, with a seam around every call that an issuance
makes: the call that asks for it, each command of the machine, each payment of a debt, and within
them each exchange with the CA, with a DNS server and with Redis. The seam counts, and at the chosen
point the process sends itself the signal.
Must not: change what a call does or answers; name commands or calls one by one (what is added to
the product is passed by the walk too).
Called by: `doomed`, as the main function of a forked process.

Such a gateway works on one hostname only, so that no other test's issuance dies with it.
"""

import contextvars
import functools
import inspect
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.certificates.authority.network import Network
from gateway.certificates.cleanup import Cleaner
from gateway.certificates.lookout import Lookout
from gateway.certificates.steps import Steps
from gateway.cli import main
from gateway.dns.exchange import Exchange
from gateway.holdings.certificates import Certificates
from gateway.store.connection import Store
from gateway.store.keys import host_key
from tests.faults.points import AFTER, BEFORE, STEP, Point, stored
from tests.lab import forks


@dataclass(frozen=True)
class Errand:
    """What the process runs, and at which points it sends itself which signal.

    `trace_file`: every point passed is written there.
    """

    arguments: tuple[str, ...]
    log_file: Path
    hostname: str
    points: frozenset[Point] = frozenset()
    signal_number: int = signal.SIGKILL
    trace_file: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)


def run(errand: Errand) -> None:
    """Become the gateway of an errand."""
    forks.settle((errand.log_file, errand.log_file), {**os.environ, **errand.environ}, os.curdir)
    _install(Journey(errand), errand.hostname)
    main(list(errand.arguments))


class Journey:
    """How far the one issuance of this process has come, as counts of its calls.

    A command that comes twice in a row is a poll: how often it comes differs from run to run, so
    what belongs to its repetitions is passed without being counted.
    """

    def __init__(self, errand: Errand) -> None:
        self._errand = errand
        self._lock = threading.Lock()
        self._last = "start 1"
        self._polling = False
        self._phases: Counter[str] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()

    def begin(self, name: str) -> str | None:
        """Enter a phase of this kind; its name, or None for a repetition."""
        with self._lock:
            self._polling = self._last == f"{name} {self._phases[name]}"
            if self._polling:
                return None
            self._phases[name] += 1
            self._last = f"{name} {self._phases[name]}"
            return self._last

    def between(self) -> str | None:
        """The phase outside all commands."""
        with self._lock:
            return None if self._polling else f"after {self._last}"

    @contextmanager
    def passing(self, phase: str | None, call: str) -> Iterator[None]:
        """Both sides of one call."""
        if phase is None:
            yield
            return
        with self._lock:
            self._calls[phase, call] += 1
            number = self._calls[phase, call]
        self._reach(Point(phase, call, number, BEFORE))
        try:
            yield
        finally:
            self._reach(Point(phase, call, number, AFTER))

    def stored(self, state: str) -> None:
        """An issuance was stored in this state."""
        with self._lock:
            self._calls["stored", state] += 1
            number = self._calls["stored", state]
        self._end_at(stored(state, number))

    def _reach(self, point: Point) -> None:
        if self._errand.trace_file is not None:
            with self._lock, self._errand.trace_file.open("a") as trace:
                trace.write(f"{point.line}\n")
        self._end_at(point)

    def _end_at(self, point: Point) -> None:
        if point in self._errand.points:
            # To this thread: sent to the process, another thread may take it, and this one would
            # go on until that one has.
            signal.pthread_kill(threading.get_ident(), self._errand.signal_number)


_OUTSIDE = "outside"
_phase: contextvars.ContextVar[str | None] = contextvars.ContextVar("phase", default=_OUTSIDE)
"""The phase that the running call belongs to: set within commands, in their threads as well."""


def _install(journey: Journey, hostname: str) -> None:
    _as_phase(journey, Certificates, "get", lambda *_: "get", only_once=True)
    _as_phase(journey, Steps, "carry_out", lambda command, *_: str(command))
    _as_phase(journey, Steps, "ask_renewal", lambda _: "ask-renewal-info")
    _as_phase(journey, Cleaner, "pay", lambda debt, _: f"pay-{debt.kind}")
    for layer, called in (("ca", Network), ("dns", Exchange)):
        for name in _public_methods(called):
            _as_call(journey, called, name, f"{layer}.{name}", lambda *_: None)
    key = host_key(hostname)
    for name in _public_methods(Store):
        if name.startswith("begin_"):
            continue  # It only asks, for a client's call, which comes when that client likes.

        def phase_between(*arguments: Any) -> str | None:
            return journey.between() if arguments[:1] == (key,) else None

        _as_call(journey, Store, name, f"redis.{name}", phase_between)
    _tell_states(journey, key)
    _only_due(hostname)


def _public_methods(called: type) -> list[str]:
    """The methods that do I/O: all but those that only close."""
    methods = inspect.getmembers(called, inspect.isfunction)
    return [name for name, _ in methods if not name.startswith("_") and name != "close"]


def _as_phase(
    journey: Journey,
    owner: type,
    name: str,
    kind_of: Callable[..., str],
    *,
    only_once: bool = False,
) -> None:
    method = getattr(owner, name)
    has_begun = False

    @functools.wraps(method)
    async def phased(self: object, *arguments: Any) -> Any:
        nonlocal has_begun
        phase = None if only_once and has_begun else journey.begin(kind_of(*arguments))
        has_begun = True
        token = _phase.set(phase)
        try:
            with journey.passing(phase, STEP):
                return await method(self, *arguments)
        finally:
            _phase.reset(token)

    setattr(owner, name, phased)


def _as_call(
    journey: Journey,
    owner: type,
    name: str,
    call: str,
    phase_between: Callable[..., str | None],
) -> None:
    """Count a method's calls within phases, and of others those that `phase_between` names."""
    method = getattr(owner, name)

    def phase_of(arguments: tuple[Any, ...]) -> str | None:
        phase = _phase.get()
        return phase_between(*arguments) if phase == _OUTSIDE else phase

    @functools.wraps(method)
    async def awaited(self: object, *arguments: Any, **named: Any) -> Any:
        with journey.passing(phase_of(arguments), call):
            return await method(self, *arguments, **named)

    @functools.wraps(method)
    def called(self: object, *arguments: Any, **named: Any) -> Any:
        with journey.passing(phase_of(arguments), call):
            return method(self, *arguments, **named)

    setattr(owner, name, awaited if inspect.iscoroutinefunction(method) else called)


def _tell_states(journey: Journey, key: str) -> None:
    commit = Store.commit

    @functools.wraps(commit)
    async def telling(self: Store, document_key: str, *arguments: Any, **named: Any) -> Any:
        version = await commit(self, document_key, *arguments, **named)
        issuance = (named.get("sets") or {}).get("issuance")
        if version is not None and document_key == key and issuance is not None:
            journey.stored(json.loads(issuance)["state"])
        return version

    setattr(Store, "commit", telling)  # noqa: B010 (a type checker forbids the assignment)


def _only_due(hostname: str) -> None:
    look = Lookout.look

    @functools.wraps(look)
    async def mine(self: Lookout, now_ms: int) -> Any:
        return [seen for seen in await look(self, now_ms) if seen[0] == hostname]

    setattr(Lookout, "look", mine)  # noqa: B010
