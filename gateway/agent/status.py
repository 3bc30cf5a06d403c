"""How each hostname stands: what the agent remembers of it and what is on the disk.

Responsible for joining the settings, the memories and the files into one status for each ownership,
and for judging it by a clock that comes in. Must not: ask the gateway or change anything, so it may
be read at any time, beside a running agent. Called by `gateway agent status`, and by `reporting`
for the metrics and the line that systemd shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agent.addresses import GivenAddress, InterfaceAddress
from gateway.agent.clocks import DAY_MS, MINUTE_MS, SECOND_MS
from gateway.agent.durable import DiskFault
from gateway.agent.lineage import Lineage, Unusable
from gateway.agent.version_files import is_key_withheld, read_public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from gateway.agent.addresses import Source
    from gateway.agent.config import (
        AgentSettings,
        CertificateSettings,
        OwnershipSettings,
        RecordSettings,
    )
    from gateway.agent.memory import Memory, Recalled
    from gateway.client import Chain
    from gateway.contract import AppId, DnsRecord, Hostname


_MISSED: Final = 3
"""A record is overdue when it was not published this many times; one may be late."""

_SHARE: Final = 10
_LONGEST_GRACE_MS: Final = DAY_MS
"""A renewal is overdue after a tenth of the time that it leaves, and never later than this."""

_CLOCK_MS: Final = MINUTE_MS
"""What a clock that is corrected may be off without anything to say."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong, in one sentence, and since when (epoch milliseconds) as far as is known.

    It is what the last attempt came to. What is `overdue`, beside it, was not even attempted.
    """

    sentence: str
    since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """The record that the gateway last took, and where the wanted address comes from.

    `wanted` is what the source last gave. `is_published` is whether the gateway took that, and it
    is what the configuration asks for, whatever became of later attempts.
    """

    source: str
    wanted: DnsRecord | None
    published: DnsRecord | None
    published_at_ms: int | None
    is_published: bool
    fault: Complaint | None
    overdue: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether what is wanted is published, nothing failed, and it was looked after in time."""
        return self.is_published and self.fault is None and self.overdue is None


@dataclass(frozen=True, slots=True)
class HookStatus:
    """Whether the deploy hook has succeeded for what is installed; `tries` failed so far."""

    is_done: bool
    tries: int
    fault: Complaint | None


@dataclass(frozen=True, slots=True)
class CertificateStatus:
    """What is on the disk, and what the gateway last said. Times are epoch milliseconds.

    `unusable` says why nothing on the disk can be served; `fault` is the last attempt's to get a
    certificate, and `awaits` says what is under way. `answered_at_ms` is when the gateway last had
    one. `is_key_read` is false where this user may not: then only the rest was judged.
    `has_access` is false where the files are not as the configuration wants them.
    """

    live: Path
    version: str | None
    fingerprint: str | None
    not_before_ms: int | None
    not_after_ms: int | None
    unusable: str | None
    renew_after_ms: int | None
    answered_at_ms: int | None
    next_ask_ms: int | None
    fault: Complaint | None
    hook: HookStatus | None
    awaits: str | None = None
    overdue: str | None = None
    is_key_read: bool = True
    has_access: bool = True

    @property
    def is_usable(self) -> bool:
        """Whether a server can serve it now."""
        return self.unusable is None

    @property
    def is_current(self) -> bool:
        """Whether it can be served, nothing is left to do, and the server was told of it."""
        is_deployed = self.hook is None or (self.hook.is_done and self.hook.fault is None)
        is_calm = self.fault is None and self.awaits is None and self.overdue is None
        return self.is_usable and self.has_access and is_calm and is_deployed


@dataclass(frozen=True, slots=True)
class OwnershipStatus:
    """One hostname; a part is None when the configuration does not ask for it.

    `forgotten` says why what was remembered of it could not be read.
    """

    app_id: AppId
    hostname: Hostname
    record: RecordStatus | None
    certificate: CertificateStatus | None
    forgotten: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether every part is."""
        parts = (self.record, self.certificate)
        return all(part is None or part.is_current for part in parts)

    @property
    def last_contact_ms(self) -> int | None:
        """When the gateway last did what was asked of it for this hostname."""
        return _latest(
            None if self.record is None else self.record.published_at_ms,
            None if self.certificate is None else self.certificate.answered_at_ms,
        )


def read_statuses(
    settings: AgentSettings, recall: Callable[[Hostname], Recalled], now_ms: int
) -> list[OwnershipStatus]:
    """The status of each ownership, in the order of the configuration. Reads some small files.

    `recall` answers what is remembered of a hostname: what is on the disk, or what the agent that
    asks knows itself.
    """
    return [_status_of(each, settings, recall, now_ms) for each in settings.ownerships]


def last_contact_ms(statuses: Sequence[OwnershipStatus]) -> int | None:
    """When the gateway last did what was asked of it, for any hostname."""
    return _latest(*(status.last_contact_ms for status in statuses))


def summary(statuses: Sequence[OwnershipStatus]) -> str:
    """All of it in a few words: for systemd and for the end of a page."""
    behind = [status.hostname for status in statuses if not status.is_current]
    total = len(statuses)
    if total == 1:
        return f"{statuses[0].hostname} is {'not ' if behind else ''}current"
    if not behind:
        return f"all {total} hostnames are current"
    more = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
    return f"{total - len(behind)} of {total} hostnames are current; not so {behind[0]}{more}"


def judge_record(settings: RecordSettings, memory: Memory, now_ms: int) -> RecordStatus:
    """What is remembered of a record. Pure."""
    is_published = memory.published is not None and _is_wanted(memory, settings)
    fault = _complaint(memory.record_fault, memory.record_fault_since_ms)
    if fault is None and memory.published is not None and not is_published:
        fault = Complaint("what is wanted has changed, and the gateway was not yet asked for it")
    return RecordStatus(
        source=source_words(settings.source),
        wanted=memory.wanted,
        published=memory.published,
        published_at_ms=memory.published_at_ms,
        is_published=is_published,
        fault=fault,
        overdue=_overdue_record(settings, memory, now_ms),
    )


def judge_certificate_files(
    settings: CertificateSettings, lineage: Lineage, memory: Memory, now_ms: int
) -> CertificateStatus:
    """What is on the disk and remembered of a certificate."""
    found: Chain | Unusable = lineage.read()
    version, is_key_read = lineage.version, True
    if isinstance(found, Unusable) and is_key_withheld(lineage.live):
        found, is_key_read = _without_key(lineage), False
    part = None if isinstance(found, Unusable) else found
    not_after_ms = None if part is None else _milliseconds(part.not_after)
    hook = None
    if settings.hook is not None:
        is_done = version is not None and memory.deployed_version == version
        # What failed for another version says nothing of this one.
        if version is not None and memory.hook_failed_version == version:
            fault = _complaint(memory.hook_fault, memory.hook_fault_since_ms)
            hook = HookStatus(is_done, memory.hook_tries, fault)
        else:
            hook = HookStatus(is_done, 0, None)
    return CertificateStatus(
        live=lineage.live,
        version=version,
        fingerprint=None if part is None else part.fingerprint,
        not_before_ms=None if part is None else _milliseconds(part.not_before),
        not_after_ms=not_after_ms,
        unusable=_unusable(found, now_ms),
        renew_after_ms=memory.renew_after_ms,
        answered_at_ms=memory.asked_at_ms,
        next_ask_ms=memory.next_ask_ms,
        fault=_complaint(memory.certificate_fault, memory.certificate_fault_since_ms),
        hook=hook,
        awaits=memory.certificate_awaits,
        overdue=_overdue_renewal(memory, not_after_ms, now_ms),
        is_key_read=is_key_read,
        has_access=not lineage.has_other_access,
    )


def source_words(source: Source) -> str:
    """Where an address comes from, for people."""
    if isinstance(source, GivenAddress):
        return f"given: {source.value}"
    if isinstance(source, InterfaceAddress):
        return f"{source.record_type} of the interface {source.interface}"
    return f"what {source.command[0]} prints"


def _status_of(
    settings: OwnershipSettings,
    agent: AgentSettings,
    recall: Callable[[Hostname], Recalled],
    now_ms: int,
) -> OwnershipStatus:
    hostname, record, certificate = settings.hostname, settings.record, settings.certificate
    recalled = recall(hostname)
    memory = recalled.memory.counting_for(settings.app_id, agent.gateway.url)
    files = None
    if certificate is not None:
        lineage = Lineage(agent.certificates_dir, hostname, certificate.access)
        files = judge_certificate_files(certificate, lineage, memory, now_ms)
    return OwnershipStatus(
        settings.app_id,
        hostname,
        None if record is None else judge_record(record, memory, now_ms),
        files,
        recalled.forgotten,
    )


def _is_wanted(memory: Memory, settings: RecordSettings) -> bool:
    """Whether what is published is what the settings want, as far as they say it themselves."""
    published, source = memory.published, settings.source
    if published is None or published.ttl != settings.ttl:
        return False
    if memory.wanted is not None and memory.wanted != published:
        return False
    if isinstance(source, GivenAddress):
        return published.value == source.value
    wanted_type = source.record_type
    return wanted_type is None or published.type == wanted_type


def _overdue_record(settings: RecordSettings, memory: Memory, now_ms: int) -> str | None:
    """That it was not published again for a long time, though no attempt failed: who should?"""
    published_at_ms = memory.published_at_ms
    if published_at_ms is None:
        return None if memory.published is None else "it is to be published now, and was not"
    if published_at_ms > now_ms + _CLOCK_MS:
        # An agent that runs publishes it at once when the clock was set back.
        return "by the clock of this machine it was published in the future"
    # A record is looked after when its source is looked at.
    every = max(settings.republish_seconds, settings.check_seconds)
    if now_ms - published_at_ms <= every * SECOND_MS * _MISSED:
        return None
    return f"it is to be published every {every} s, and was not: nothing keeps it current"


def _overdue_renewal(memory: Memory, not_after_ms: int | None, now_ms: int) -> str | None:
    """That the renewal should long be there. Minutes count for a certificate of an hour only."""
    renew_after_ms = memory.renew_after_ms
    if not_after_ms is None:
        return None
    if memory.asked_at_ms is None:
        return "the gateway is to be asked for it now, and was not"
    if renew_after_ms is None:
        return None
    grace_ms = min(max(not_after_ms - renew_after_ms, 0) // _SHARE, _LONGEST_GRACE_MS)
    if now_ms <= renew_after_ms + grace_ms:
        return None
    return "its renewal is long due, and there is none"


def _without_key(lineage: Lineage) -> Chain | Unusable:
    try:
        return read_public(lineage.live, lineage.hostname)
    except DiskFault as fault:
        return Unusable(str(fault))


def _unusable(found: Chain | Unusable, now_ms: int) -> str | None:
    if isinstance(found, Unusable):
        return found.reason
    if now_ms >= _milliseconds(found.not_after):
        return "it has expired"
    if now_ms < _milliseconds(found.not_before):
        return "it is not valid yet by the clock of this machine"
    return None


def _latest(*times_ms: int | None) -> int | None:
    return max((time for time in times_ms if time is not None), default=None)


def _complaint(sentence: str | None, since_ms: int | None) -> Complaint | None:
    return None if sentence is None else Complaint(sentence, since_ms)


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
