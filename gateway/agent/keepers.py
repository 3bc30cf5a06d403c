"""The keepers of one ownership, put together, and what `service` and `once` do alike with them.

Responsible for joining what the configuration lists with the parts that keep it current, for one
round that cannot break anything else, and for the end: calls, waits and address commands are given
up at once, as all of that is begun anew safely; a hook that runs has a grace, and one that takes
longer is killed, and run again by the next agent. Must not: decide when rounds are made; `service`
does for an agent that stays, `once` for one that ends.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from gateway.agent.certificate_keeper import CertificateKeeper
from gateway.agent.clocks import MINUTE_MS, moment
from gateway.agent.deployer import Deployer
from gateway.agent.lineage import Lineage
from gateway.agent.memory import Memories
from gateway.agent.notebook import Notebook
from gateway.agent.record_keeper import RecordKeeper
from gateway.agent.rounds import Fault, Round

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from gateway.agent.clocks import Clocks
    from gateway.agent.config import AgentSettings, OwnershipSettings
    from gateway.agent.contact import Contact
    from gateway.agent.memory import Memory
    from gateway.contract import Hostname

LOOKS_AT_ONCE: Final = 8
"""How many sources are looked at at once: 500 commands in one moment are a load of their own."""

_BROKEN_PAUSE_MS: Final = 5 * MINUTE_MS

_log = structlog.get_logger(__name__)


class Keeper(Protocol):
    """Keeps one thing current. `what` it is, in a word or two."""

    what: str
    hostname: Hostname

    async def round(self) -> Round:
        """Look, and do what is to be done."""

    def note_fault(self, fault: Fault) -> None:
        """Remember what is wrong, for those who ask; the next round that ends takes its place."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One ownership with its keepers. `changed` is set when its files have changed."""

    hostname: Hostname
    notebook: Notebook
    record: RecordKeeper | None
    certificate: CertificateKeeper | None
    deployer: Deployer | None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def askers(self) -> list[Keeper]:
        """Those that ask the gateway."""
        return [keeper for keeper in (self.record, self.certificate) if keeper is not None]


@dataclass(frozen=True, slots=True)
class Household:
    """Everything that an agent keeps. `hook_turn` is held by whoever runs a deploy hook."""

    kept: Sequence[Kept]
    hook_turn: asyncio.Lock

    @property
    def remembered(self) -> dict[Hostname, Memory]:
        """What is known of each hostname at this moment."""
        return {each.hostname: each.notebook.memory for each in self.kept}


def put_together(
    settings: AgentSettings, contact: Contact, clocks: Clocks, *, anew: bool = False
) -> Household:
    """The keepers of all ownerships, which share the way to the gateway. Reads their memories.

    `anew`: they ask for everything at once, as if there had never been an answer, nor a word of the
    gateway's to wait.
    """
    memories = Memories(settings.state_dir)
    looks, turn = asyncio.Semaphore(LOOKS_AT_ONCE), asyncio.Lock()

    def kept(each: OwnershipSettings) -> Kept:
        notebook = Notebook(memories, each.hostname, clocks)
        notebook.count_for(each.app_id, settings.gateway.url)
        if anew:
            # Written down: so the wish outlasts a gateway that is away.
            notebook.change(
                published_at_ms=None,
                record_held_until_ms=None,
                asked_at_ms=None,
                certificate_held_until_ms=None,
            )
        ownership, changed = each.ownership, asyncio.Event()
        record = certificate = deployer = None
        if each.record is not None:
            record = RecordKeeper(ownership, each.record, contact, notebook, clocks, looks)
        if each.certificate is not None:
            lineage = Lineage(
                settings.certificates_dir, each.hostname, each.certificate.access, clocks.now_ms
            )
            certificate = CertificateKeeper(
                ownership, lineage, contact, notebook, clocks, changed.set
            )
            hook = each.certificate.hook
            if hook is not None:
                deployer = Deployer(each.hostname, hook, lineage, notebook, clocks, turn)
        return Kept(each.hostname, notebook, record, certificate, deployer, changed)

    return Household([kept(each) for each in settings.ownerships], turn)


async def carry_out(keeper: Keeper) -> Round:
    """A keeper's round. What nobody foresaw becomes a fault of this one; the others go on."""
    try:
        return await keeper.round()
    except Exception as error:  # noqa: BLE001  (one broken keeper must not stop the others)
        _log.exception("a fault of the agent itself", hostname=keeper.hostname, keeper=keeper.what)
        sentence = f"a fault of the agent itself: {type(error).__name__}; its log says more"
        fault = Fault(sentence, mends=False, is_logged=True)
        keeper.note_fault(fault)
        return Round(_BROKEN_PAUSE_MS, fault=fault)


async def rest(came_to: Round, contact: Contact) -> None:
    """The pause after a round; shorter if it was no keeper's own fault and that is over."""
    pause_seconds = came_to.pause_ms / 1000
    if came_to.fault is not None and came_to.fault.is_shared:
        await within(pause_seconds, contact.opened())
    else:
        await asyncio.sleep(pause_seconds)


async def within(limit_seconds: float, event: Awaitable[object]) -> None:
    """Wait for something, but no longer than this."""
    with suppress(TimeoutError):
        async with asyncio.timeout(limit_seconds):
            await event


def told_to_stop() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


async def end_all(
    tasks: Iterable[asyncio.Task[Any]],
    hooks: Mapping[Deployer, asyncio.Task[Any]],
    household: Household,
    grace_seconds: float,
) -> None:
    """Cancel everything and wait until it has ended; the running hook, if any, after a grace.

    Then wait for what is remembered to be on the disk, as far as that takes it.
    """
    idle = [task for deployer, task in hooks.items() if not deployer.is_running]
    ending = [*tasks, *idle]
    for task in ending:
        task.cancel()
    # Whoever runs a hook holds the turn, and those that waited for it have just been cancelled.
    await within(grace_seconds, household.hook_turn.acquire())
    for task in hooks.values():
        task.cancel()
    await asyncio.gather(*ending, *hooks.values(), return_exceptions=True)
    await asyncio.gather(*(each.notebook.written() for each in household.kept))


def outlook(kept: Sequence[Kept], now_ms: int) -> str:
    """How long the certificates that are on disk are good, in a few words."""
    wanted = {each.hostname: each.certificate for each in kept if each.certificate is not None}
    seen = {name: keeper.not_after_ms for name, keeper in wanted.items() if keeper.has_looked}
    good = {name: end for name, end in seen.items() if end is not None and end > now_ms}
    words = []
    if good:
        first = min(good, key=lambda name: good[name])
        ending = f"{moment(good[first])} ({first})"
        words.append(
            f"the certificate on disk is good until {ending}"
            if len(good) == 1
            else f"{len(good)} certificates on disk are good, the first ends {ending}"
        )
    if len(good) < len(seen):
        words.append(
            f"{_hostnames(len(seen) - len(good), 'has', 'have')} no good certificate on disk"
        )
    if len(seen) < len(wanted):
        words.append(f"{_hostnames(len(wanted) - len(seen), 'was', 'were')} not looked at yet")
    return "; ".join(words)


def _hostnames(number: int, verb: str, verb_of_several: str) -> str:
    return f"1 hostname {verb}" if number == 1 else f"{number} hostnames {verb_of_several}"
