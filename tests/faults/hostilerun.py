"""One hostile-writer run: gateways and another writer in one zone, then the judgement of it all.

Responsible for: the lab of a run (BIND, Redis, gateways; no CA), its threads, emptying Redis in the
middle, and the figures.
Must not: judge by itself; `truth` does.
Called by: `test_hostile_writer`; `scripts/hostile-writer`, as `python -m tests.faults.hostilerun`.
"""

import random
import secrets
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway.certificates.sealing import load_keyring
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.owner import Owner
from gateway.wiring import MARKER_PURPOSE
from tests.faults.hostile import HostileWriter
from tests.faults.hostilecalls import ADDRESSES, Call, Desk, Ownership, RandomCaller
from tests.faults.truth import Judge, Proofs
from tests.faults.zonehistory import ZONE, Timeline, logged_faults, read_versions
from tests.integration.service.calling import PROVISION, Caller, spec
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, running_gateway, write_gateway_config
from tests.lab.ports import free_port
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, ask_redis, running_redis

HOSTNAMES = tuple(f"r{n}.m{n % 3}.{ZONE}" for n in range(12))
_APPS = {("client-a", "relay"): 6, ("client-a", "other"): 2, ("client-b", "relay"): 2}
OWNERS = {
    Ownership(client, app, name): weight
    for name in HOSTNAMES
    for (client, app), weight in _APPS.items()
}
"""All ownerships, and how often each asks: one of a hostname's more than its rivals."""
_END_LIMIT_SECONDS = 30.0
_LEAST_LIMIT_SECONDS = 30.0
_LEAST_RATE = 5
"""Calls a second, on a machine that is busy with other things."""


@dataclass(frozen=True)
class Options:
    """What a run may be told. It lasts until so many calls are answered.

    With many `callers` the gateway sends updates of several hostnames as one.
    """

    calls: int = 800
    seed: int = 0
    processes: int = 1
    flushes: bool = False
    callers: int = 6


@dataclass(frozen=True)
class Findings:
    """What came of a run; the objections are empty when all is well."""

    options: Options
    calls: tuple[Call, ...]
    hand: Counter[str]
    seconds: float
    versions: int
    gateway_versions: int
    joined_versions: int
    foreign_changes: tuple[str, ...]
    untrue_answers: tuple[str, ...]

    @property
    def answers(self) -> Counter[str]:
        return Counter(call.status for call in self.calls)

    def figures(self) -> str:
        """The table."""
        options = self.options
        redis = ", Redis emptied in the middle" if options.flushes else ""
        answers = ", ".join(f"{status} {n}" for status, n in sorted(self.answers.items()))
        hands = ", ".join(f"{what} {n}" for what, n in sorted(self.hand.items()))
        rows = (
            ("operations of the gateway", f"{len(self.calls)}"),
            ("  answers", answers),
            ("  conflicts", f"{self.answers['record-conflict']}"),
            ("operations of the other writer", f"{self.hand.total()}"),
            ("  ways", hands),
            ("versions of the zone", f"{self.versions}, {self.gateway_versions} the gateway's"),
            ("  of several hostnames", f"{self.joined_versions}"),
            ("changes to foreign records", f"{len(self.foreign_changes)}"),
            ("untrue answers", f"{len(self.untrue_answers)}"),
        )
        title = (
            f"hostile writer, {options.processes} gateway process(es){redis},"
            f" {options.callers} callers, {self.seconds:.0f} s, seed {options.seed}"
        )
        return "\n".join([title, *(f"  {name:<32}{value}" for name, value in rows)])


def run(folder: Path, options: Options) -> Findings:
    """Run in the new `folder`, and judge."""
    with _lab(folder, options.processes) as (bind, redis, desk, config):
        chances = [_chance(who, options.seed) for who in range(options.callers + 1)]
        writer = HostileWriter(bind.primary, bind.hand, HOSTNAMES, chances[0])
        callers = [RandomCaller(desk, OWNERS, chance, writer.tell) for chance in chances[1:]]
        is_over = threading.Event()
        hand = _Thread(writer.run)
        threads = [_Thread(partial(caller.run, is_over)) for caller in callers]
        for thread in (hand, *threads):
            thread.start()
        began = time.monotonic()
        try:
            _wait_for_calls(callers, options.calls // 2)
            if options.flushes:
                _empty_redis(redis, desk, config)
            _wait_for_calls(callers, options.calls)
        finally:
            is_over.set()
            for thread in threads:
                thread.end()
            writer.finish()
            hand.end()
        seconds = time.monotonic() - began
        log = bind.primary_process.log_file.read_text()
        versions = read_versions(folder / "bind" / "primary" / f"{ZONE}.zone.jnl")
        proofs = _proofs(folder / "gateway" / "keyring")
    calls = tuple(call for caller in callers for call in caller.calls)
    judge = Judge(Timeline(versions, HOSTNAMES), calls, proofs, desk.flushes)
    logged = logged_faults(log, versions, bind.tsig.name, set(HOSTNAMES))
    return Findings(
        options,
        calls,
        writer.done,
        seconds,
        len(versions),
        sum(not version.is_the_hands for version in versions),
        sum(not version.is_the_hands and len(version.names) > 1 for version in versions),
        (*sorted(logged), *judge.foreign_changes()),
        tuple(judge.untrue_answers()),
    )


def _chance(who: int, seed: int) -> random.Random:
    """One thread's source of choices: the same for the same seed."""
    return random.Random(f"{who} {seed}")  # noqa: S311 (to be repeatable, not secret)


def _wait_for_calls(callers: Sequence[RandomCaller], calls: int) -> None:
    wait_until(
        lambda: sum(len(caller.calls) for caller in callers) >= calls,
        f"{calls} calls are answered",
        _LEAST_LIMIT_SECONDS + calls / _LEAST_RATE,
    )


def _empty_redis(redis: RedisProcess, desk: Desk, config: GatewayConfig) -> None:
    """And make the clients again, as an operator would."""
    began = time.monotonic()
    ask_redis(redis.port, "FLUSHALL")
    _provision(desk, config)
    desk.flushes.append((began, time.monotonic()))


def _provision(desk: Desk, config: GatewayConfig) -> None:
    admin = Caller(desk.urls[0], config.admin_token)
    for client_id in dict.fromkeys(client for client, _ in _APPS):
        made = admin.call(PROVISION, action="ensure", spec=spec(client_id, f"**.{ZONE}"))
        desk.tokens[client_id] = made["apiToken"]


def _proofs(keyring_file: Path) -> Proofs:
    """Every marker that the gateway may ever make in a run, made by its own parts."""
    keys = load_keyring(keyring_file).derive(MARKER_PURPOSE)
    markers = Markers([MarkerKey(key_id, secret) for key_id, secret in keys])
    proofs = {}
    for owner in OWNERS:
        who = Owner(ClientId(owner.client_id), AppId(owner.app_id), Hostname(owner.hostname))
        for type_, value in ADDRESSES:
            text = f'"{markers.sign(who, type_, value)}"'
            proofs[(owner.hostname, text)] = (owner, type_, value)
    return proofs


@contextmanager
def _lab(
    folder: Path, processes: int
) -> Iterator[tuple[BindPair, RedisProcess, Desk, GatewayConfig]]:
    """A primary alone, a Redis, gateways that only answer, and their clients."""
    for part in ("bind", "redis"):
        (folder / part).mkdir(mode=0o700)
    with ExitStack() as stack:
        redis = stack.enter_context(running_redis(folder / "redis"))
        bind = BindPair(folder / "bind", (ZONE,))
        stack.callback(bind.stop)
        bind.start_primary()
        config = write_gateway_config(folder / "gateway", bind, redis.url, None)
        urls = []
        for number in range(processes):
            gateway = running_gateway(config, f"gateway-{number}", port=free_port())
            urls.append(stack.enter_context(gateway).url)
        desk = Desk(urls, bind.primary, {})
        _provision(desk, config)
        yield bind, redis, desk, config


class _Thread(threading.Thread):
    """A thread whose fault is raised where it is waited for."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._fault: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as fault:  # noqa: BLE001 (raised again by `end`)
            self._fault = fault

    def end(self) -> None:
        self.join(_END_LIMIT_SECONDS)
        if self._fault is not None:
            raise self._fault
        assert not self.is_alive(), "a thread of the run does not end"


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="scripts/hostile-writer")
    parser.add_argument("--calls", type=int, default=8000, help="of each variant (8000)")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run's choices")
    parser.add_argument("--processes", type=int, default=None, help="gateways of the only variant")
    parser.add_argument("--callers", type=int, default=Options.callers, help="at once (6)")
    parser.add_argument("--flush", action="store_true", help="empty Redis in the middle of it")
    given = parser.parse_args(arguments)
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    variants = [(1, False), (2, False), (2, True)]
    if given.processes is not None or given.flush:
        variants = [(given.processes or 1, given.flush)]
    is_bad = False
    for processes, flushes in variants:
        with tempfile.TemporaryDirectory(prefix="gateway-hostile-") as folder:
            findings = run(
                Path(folder), Options(given.calls, seed, processes, flushes, given.callers)
            )
        print(findings.figures(), flush=True)  # noqa: T201 (a command)
        objections = (*findings.foreign_changes, *findings.untrue_answers)
        for objection in objections:
            print(f"  ! {objection}")  # noqa: T201
        is_bad |= bool(objections)
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
