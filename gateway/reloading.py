"""Takes a changed configuration while the process serves: all of it, or nothing.

The new parts are opened beside those that work. Once each has been looked at, calls go to them; the
former ones end when their calls and steps have. What is refused, for whichever reason, changes
nothing: a key that only a restart can take is one, since a process that runs on half of a file
would be a configuration that nobody has written.

Reloads follow each other, so there are two generations at most; however many are asked for while
one is under way, one more comes after it. systemd hears of the start and of reloads from here
alone, so that it takes no word for the other. Called by `gateway.running`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from gateway import measures
from gateway.certificates.sealing import KeyringInvalid
from gateway.clocks import monotonic_us
from gateway.config import ConfigInvalid
from gateway.config.changes import changed_keys, keys_needing_restart
from gateway.files import Reading
from gateway.logs import configure_logging, set_level
from gateway.store.schema_version import StateRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.config import Settings
    from gateway.generation import Generation
    from gateway.http.switch import Switch, Turn
    from gateway.notify import Notifier

LOOK_SECONDS: Final = 6.0
"""How long calls are kept from new parts, at most, until each was looked at: longer than a look."""

READ_SECONDS: Final = 20.0
"""How long the files of a configuration may take to be read."""

_STATUS_WAITING: Final = "a reload waits for what is under way"
_STATUS_NOT_TAKEN: Final = "the configuration read last was not taken, the log says why"

_log = structlog.get_logger(__name__)


class ReloadRefused(Exception):
    """The new configuration cannot be taken; `faults` are sentences that begin with their key."""

    def __init__(self, faults: Iterable[str]) -> None:
        super().__init__("the configuration is refused")
        self.faults = tuple(faults)


class Reloader:
    """The generation that works, and the way to the next one.

    `reread` reads the configuration as it was read at the start; `make` a generation of it.
    `follow` has the rest of the process take a configuration that has been taken.
    """

    def __init__(
        self,
        current: Generation,
        switch: Switch,
        notifier: Notifier,
        *,
        reread: Callable[[], Settings],
        make: Callable[[Settings], Generation],
        follow: Callable[[Settings], None],
    ) -> None:
        self.current = current
        self._former: tuple[Generation, Turn] | None = None
        self._switch = switch
        self._notifier = notifier
        self._reread = reread
        self._make = make
        self._follow = follow
        self._wanted = asyncio.Event()
        self._is_busy = True
        self.is_up = asyncio.Event()
        """Set once the first parts have been looked at and systemd was told."""
        self._says_all = False

    @property
    def generations(self) -> list[Generation]:
        """All whose parts are open."""
        return [self.current] if self._former is None else [self.current, self._former[0]]

    def ask(self) -> None:
        """Have the configuration read anew, once more if that is under way. Never blocks."""
        if self._is_busy and not self._wanted.is_set():
            _log.info("reload asked for, it waits for what is under way")
            self._notifier.status(f"{self.current.summary}; {_STATUS_WAITING}")
        self._wanted.set()

    def toggle_debug(self) -> None:
        """Have the log say everything, or again what it is configured to say."""
        self._says_all = not self._says_all
        level = "debug" if self._says_all else self.current.settings.log.level
        set_level(level)
        _log.warning("log level set", to=level)

    async def run(self) -> None:
        """Say once that the process is up, then carry reloads out, until cancelled."""
        await self.current.monitor.looked(LOOK_SECONDS)
        self._notifier.ready(self.current.summary)
        self.is_up.set()
        while True:
            self._is_busy = False
            await self._wanted.wait()
            self._wanted.clear()
            self._is_busy = True
            self._notifier.reloading(monotonic_us())
            status = f"{self.current.summary}; {_STATUS_NOT_TAKEN}"
            try:
                await self._reload()
                status = self.current.summary
            except ReloadRefused as refused:
                measures.configuration_refused(is_refused=True)
                for fault in refused.faults:
                    key, _, sentence = fault.partition(": ")
                    _log.error(
                        "configuration refused, the former one holds", key=key, fault=sentence
                    )
            except Exception:  # noqa: BLE001 (whatever it is, the former parts work)
                measures.configuration_refused(is_refused=True)
                _log.exception("configuration not taken, the former one holds")
            waiting = f"; {_STATUS_WAITING}" if self._wanted.is_set() else ""
            self._notifier.ready(f"{status}{waiting}")
            await self._retire_former()

    async def _reload(self) -> None:
        settings = await self._read()
        changed = changed_keys(self.current.settings, settings)
        fixed = keys_needing_restart(changed)
        if fixed:
            raise ReloadRefused(f"{key}: takes effect with a restart only" for key in fixed)
        generation = self._make(settings)
        try:
            await generation.start(self.current)
        except KeyringInvalid as invalid:
            raise ReloadRefused(f"keyring_file: {fault}" for fault in invalid.faults) from None
        except StateRefused as refused:
            raise ReloadRefused([f"redis: {refused}"]) from None
        try:
            await generation.monitor.looked(LOOK_SECONDS)
            generation.rely_on()
        except BaseException:
            generation.stop_working(0)
            await generation.close()
            raise
        keyring = self.current.gateway.keyring
        if "keyring_file" not in changed and not generation.gateway.keyring.is_as(keyring):
            changed.append("keyring_file")  # the same file with other keys in it
        self._take(generation)
        measures.configuration_refused(is_refused=False)
        _log.info("configuration taken", changed=changed)

    async def _read(self) -> Settings:
        try:
            # Files may be on a disk that hangs, and roots take a while to parse.
            return await Reading(self._reread, READ_SECONDS).result()
        except ConfigInvalid as invalid:
            raise ReloadRefused(invalid.faults) from None
        except TimeoutError:
            said = f"its files were not read within {READ_SECONDS:g} seconds"
            raise ReloadRefused([f"--config: {said}"]) from None

    def _take(self, generation: Generation) -> None:
        self._former = self.current, self._switch.turn_to(generation.app)
        self.current = generation
        self._follow(generation.settings)
        log = generation.settings.log
        configure_logging(log.level, log.format)
        self._says_all = False

    async def _retire_former(self) -> None:
        if self._former is None:
            return
        former, turn = self._former
        try:
            await former.retire(turn)
        except Exception:  # noqa: BLE001 (it was to end, and has ended)
            _log.exception("the former configuration's parts ended badly")
        self._former = None
