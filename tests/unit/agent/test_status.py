"""How a hostname stands, by what is remembered and what is on the disk."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.agent.addresses import CommandAddress, GivenAddress, InterfaceAddress, Source
from gateway.agent.clocks import DAY_MS, SECOND_MS
from gateway.agent.config import (
    AgentSettings,
    CertificateSettings,
    GatewaySettings,
    OwnershipSettings,
    RecordSettings,
)
from gateway.agent.hook import Hook
from gateway.agent.lineage import FileAccess, Lineage
from gateway.agent.memory import Memories, Memory
from gateway.agent.status import (
    HookStatus,
    OwnershipStatus,
    judge_record,
    last_contact_ms,
    read_statuses,
    source_words,
    summary,
)
from gateway.client import Bundle, read_bundle
from gateway.client.tokens import TokenSource
from gateway.contract import AppId, DnsRecord, Hostname
from tests.lab.certificates import LabAuthority

NAME = Hostname("relay.cluster-a.example.com")
PUBLISHED = DnsRecord(type="A", value="198.51.100.85", ttl=60)
GIVEN = RecordSettings(GivenAddress("198.51.100.85"), 60, 30, 3600)
HOOK = Hook(("systemctl", "reload", "nginx"), 60)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    issued = LabAuthority().issue(NAME)
    return read_bundle(issued.chain_pem, issued.private_key_pem, NAME)


class Disk:
    """The folders of an agent, and the status that they come to at a time."""

    def __init__(self, folder: Path, hook: Hook | None) -> None:
        access = FileAccess()
        only = OwnershipSettings(AppId("a"), NAME, GIVEN, CertificateSettings(access, hook))
        gateway = GatewaySettings("https://g.example", TokenSource("env", "T", {}), None, False)
        certificates = folder / "certificates"
        self.settings = AgentSettings(folder, certificates, None, "console", gateway, (only,))
        self.memories = Memories(folder)
        self.lineage = Lineage(certificates, NAME, access)

    def configure(self, access: FileAccess) -> None:
        """Have the files' access configured anew."""
        (only,) = self.settings.ownerships
        certificate = CertificateSettings(access, HOOK)
        ownerships = (replace(only, certificate=certificate),)
        self.settings = replace(self.settings, ownerships=ownerships)

    def remember(self, **fields: object) -> None:
        self.memories.write(NAME, replace(self.memories.read(NAME).memory, **fields))  # type: ignore[arg-type]

    def status(self, now: datetime) -> OwnershipStatus:
        now_ms = round(now.timestamp() * 1000)
        (only,) = read_statuses(self.settings, self.memories.read, now_ms)
        return only


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path, HOOK)


@pytest.fixture
def served(disk: Disk, bundle: Bundle) -> Disk:
    """All is as it should be."""
    version = disk.lineage.install(bundle)
    now_ms = round(now().timestamp() * 1000)
    disk.remember(
        published=PUBLISHED,
        published_at_ms=now_ms - 5,
        wanted=PUBLISHED,
        asked_at_ms=now_ms,
        deployed_version=version,
    )
    return disk


def now() -> datetime:
    return datetime.now(UTC)


def test_hostname_is_current_when_all_is_as_it_should_be(served: Disk) -> None:
    assert served.status(now()).is_current


@pytest.mark.parametrize(
    "access", [FileAccess(key_mode=0o640), FileAccess(combined=True)], ids=["mode", "combined"]
)
def test_files_that_are_configured_anew_are_not_current_before_they_are_so(
    served: Disk, bundle: Bundle, access: FileAccess
) -> None:
    served.configure(access)
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert (certificate.is_usable, certificate.is_current) == (True, False)
    version = Lineage(served.settings.certificates_dir, NAME, access).install(bundle)
    served.remember(deployed_version=version)
    assert served.status(now()).is_current


def test_key_that_others_may_read_by_now_is_not_current(served: Disk) -> None:
    (served.lineage.live / "privkey.pem").chmod(0o666)
    assert not served.status(now()).is_current


@pytest.mark.parametrize("field", ["app_id", "url"])
def test_what_was_answered_for_another_one_is_not_current(served: Disk, field: str) -> None:
    memory = served.memories.read(NAME).memory.counting_for("a", "https://g.example")
    served.memories.write(NAME, memory)
    assert served.status(now()).is_current
    served.remember(**{field: "another"})
    status = served.status(now())
    assert status.record is not None
    assert status.certificate is not None
    assert (status.record.is_current, status.certificate.is_current) == (False, False)
    assert status.certificate.is_usable


@pytest.mark.parametrize("field", ["published_at_ms", "asked_at_ms"])
def test_what_is_to_be_asked_for_now_is_not_current(served: Disk, field: str) -> None:
    served.remember(**{field: None})
    assert not served.status(now()).is_current


def test_hostname_that_was_never_served_is_not_current(disk: Disk) -> None:
    status = disk.status(now())
    assert status.record is not None
    assert status.certificate is not None
    assert not status.is_current
    assert not status.record.is_current
    assert status.certificate.unusable is not None
    assert status.last_contact_ms is None


def test_certificate_on_disk_is_told_with_its_dates(served: Disk, bundle: Bundle) -> None:
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert certificate.live == served.lineage.live
    assert certificate.version == served.lineage.version
    assert certificate.fingerprint == bundle.fingerprint
    assert certificate.not_before_ms == bundle.not_before.timestamp() * 1000
    assert certificate.not_after_ms == bundle.not_after.timestamp() * 1000


def test_certificate_that_has_expired_is_not_usable(served: Disk, bundle: Bundle) -> None:
    certificate = served.status(bundle.not_after).certificate
    assert certificate is not None
    assert certificate.unusable == "it has expired"
    assert not certificate.is_current


def test_certificate_of_the_future_is_not_usable(served: Disk) -> None:
    certificate = served.status(datetime(2001, 1, 1, tzinfo=UTC)).certificate
    assert certificate is not None
    assert certificate.unusable == "it is not valid yet by the clock of this machine"


def test_certificate_whose_key_was_damaged_is_not_usable(served: Disk) -> None:
    (served.lineage.live / "privkey.pem").write_text("nothing")
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert certificate.unusable is not None
    assert certificate.not_after_ms is None


def test_certificate_whose_hook_has_not_run_is_usable_and_not_current(served: Disk) -> None:
    served.remember(deployed_version="another")
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert certificate.is_usable
    assert not certificate.is_current


def test_certificate_without_a_hook_needs_none(tmp_path: Path, bundle: Bundle) -> None:
    disk = Disk(tmp_path, None)
    disk.lineage.install(bundle)
    disk.remember(asked_at_ms=1)
    certificate = disk.status(now()).certificate
    assert certificate is not None
    assert certificate.is_current


@pytest.mark.parametrize("part", ["record", "certificate"])
def test_fault_of_a_part_makes_the_hostname_not_current(served: Disk, part: str) -> None:
    served.remember(**{f"{part}_fault": "no way", f"{part}_fault_since_ms": 3})
    status = served.status(now())
    fault = getattr(status, part).fault
    assert (fault.sentence, fault.since_ms) == ("no way", 3)
    assert not status.is_current


def remember_failures(disk: Disk, version: str | None) -> None:
    """As after four failures of the hook in a row for a version."""
    disk.remember(
        deployed_version=None,
        hook_failed_version=version,
        hook_fault="no",
        hook_fault_since_ms=3,
        hook_tries=4,
    )


def test_hook_that_failed_for_another_version_is_still_to_be_run(served: Disk) -> None:
    remember_failures(served, "0009-20231114T221320Z-aaaaaaaaaaaa")
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert certificate.hook == HookStatus(is_done=False, tries=0, fault=None)


def test_hook_that_fails_is_told(served: Disk) -> None:
    remember_failures(served, served.lineage.version)
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert certificate.hook is not None
    assert certificate.hook.fault is not None
    assert (certificate.hook.tries, certificate.hook.fault.since_ms) == (4, 3)


def test_memory_that_cannot_be_read_is_told(served: Disk) -> None:
    (served.settings.state_dir / "state" / f"{NAME}.json").write_text("{")
    assert served.status(now()).forgotten is not None


def test_last_contact_is_the_later_of_the_parts(served: Disk) -> None:
    contact_ms = served.memories.read(NAME).memory.asked_at_ms
    assert served.status(now()).last_contact_ms == contact_ms


def test_last_contact_of_several_is_the_latest() -> None:
    one, other = (_record_only(published_at_ms=at_ms) for at_ms in (3, 4))
    assert last_contact_ms([one, other, _record_only()]) == 4


def test_part_that_is_not_configured_is_not_missed() -> None:
    status = OwnershipStatus(AppId("a"), NAME, judge_record(GIVEN, _memory(), 1), None)
    assert status.is_current


@pytest.mark.parametrize(
    ("source", "ttl"),
    [
        (GivenAddress("198.51.100.86"), 60),
        (GivenAddress("198.51.100.85"), 300),
        (InterfaceAddress("eth0", "AAAA"), 60),
        (CommandAddress(("x",), 1, "AAAA"), 60),
    ],
)
def test_record_is_not_current_when_the_configuration_has_changed(source: Source, ttl: int) -> None:
    assert not judge_record(RecordSettings(source, ttl, 30, 3600), _memory(), 1).is_current


@pytest.mark.parametrize(
    "source",
    [
        GivenAddress("198.51.100.85"),
        InterfaceAddress("eth0", "A"),
        CommandAddress(("x",), 1, "A"),
        CommandAddress(("x",), 1, None),
    ],
)
def test_record_is_current_when_it_is_of_the_wanted_kind(source: Source) -> None:
    assert judge_record(RecordSettings(source, 60, 30, 3600), _memory(), 1).is_current


def test_record_is_published_and_not_current_when_the_last_attempt_failed() -> None:
    memory = replace(_memory(), record_fault="the gateway cannot be reached")
    judged = judge_record(GIVEN, memory, 1)
    assert (judged.is_published, judged.is_current) == (True, False)


def test_record_is_not_published_when_the_source_gives_another() -> None:
    other = DnsRecord(type="A", value="198.51.100.86", ttl=60)
    settings = RecordSettings(InterfaceAddress("eth0", "A"), 60, 30, 3600)
    judged = judge_record(settings, replace(_memory(), wanted=other), 1)
    assert (judged.is_published, judged.is_current) == (False, False)


@pytest.mark.parametrize(
    ("check_seconds", "ago_seconds", "is_overdue"),
    [
        (30, 3 * 3600, False),
        (30, 3 * 3600 + 1, True),
        (7200, 3 * 7200, False),
        (7200, 3 * 7200 + 1, True),
        (30, -60, False),
        (30, -61, True),
    ],
)
def test_record_that_was_not_published_again_for_long_is_overdue(
    check_seconds: int, ago_seconds: int, is_overdue: bool
) -> None:
    settings = replace(GIVEN, check_seconds=check_seconds)
    memory = replace(_memory(), published_at_ms=DAY_MS)
    judged = judge_record(settings, memory, DAY_MS + ago_seconds * SECOND_MS)
    assert (judged.overdue is not None, judged.is_current) == (is_overdue, not is_overdue)
    assert judged.is_published


@pytest.mark.parametrize(("late_seconds", "is_overdue"), [(359, False), (361, True)])
def test_renewal_is_overdue_after_a_tenth_of_what_it_leaves(
    served: Disk, bundle: Bundle, late_seconds: int, is_overdue: bool
) -> None:
    renew_after = bundle.not_after - timedelta(hours=1)
    served.remember(renew_after_ms=round(renew_after.timestamp() * 1000))
    certificate = served.status(renew_after + timedelta(seconds=late_seconds)).certificate
    assert certificate is not None
    assert certificate.is_usable
    assert (certificate.overdue is not None) is is_overdue
    assert certificate.is_current is not is_overdue


def test_renewal_is_overdue_after_a_day_however_much_it_leaves(
    served: Disk, bundle: Bundle
) -> None:
    renew_after = bundle.not_after - timedelta(days=60)
    served.remember(renew_after_ms=round(renew_after.timestamp() * 1000))
    for late, is_overdue in ((timedelta(hours=23), False), (timedelta(hours=25), True)):
        certificate = served.status(renew_after + late).certificate
        assert certificate is not None
        assert (certificate.overdue is not None) is is_overdue


def test_issuance_that_is_under_way_is_told_and_something_left_to_do(served: Disk) -> None:
    served.remember(certificate_awaits="the gateway obtains a certificate")
    certificate = served.status(now()).certificate
    assert certificate is not None
    assert certificate.awaits == "the gateway obtains a certificate"
    assert not certificate.is_current


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (GivenAddress("198.51.100.86"), "given: 198.51.100.86"),
        (InterfaceAddress("eth0", "AAAA"), "AAAA of the interface eth0"),
        (CommandAddress(("/bin/x", "secret"), 1, None), "what /bin/x prints"),
    ],
)
def test_source_is_told_in_words(source: Source, words: str) -> None:
    assert source_words(source) == words


@pytest.mark.parametrize(
    ("current", "words"),
    [
        ([True], "n0.example.com is current"),
        ([True, True], "all 2 hostnames are current"),
        ([False], "n0.example.com is not current"),
        ([True, False, False], "1 of 3 hostnames are current; not so n1.example.com and 1 more"),
    ],
)
def test_summary_counts_and_names_the_first_that_is_not_current(
    current: list[bool], words: str
) -> None:
    statuses = [
        replace(
            _record_only(published=PUBLISHED if is_so else None, published_at_ms=1),
            hostname=f"n{i}.example.com",
        )
        for i, is_so in enumerate(current)
    ]
    assert summary(statuses) == words


def _memory() -> Memory:
    return Memory(published=PUBLISHED, published_at_ms=1)


def _record_only(
    *, published: DnsRecord | None = PUBLISHED, published_at_ms: int | None = None
) -> OwnershipStatus:
    memory = Memory(published=published, published_at_ms=published_at_ms)
    return OwnershipStatus(AppId("a"), NAME, judge_record(GIVEN, memory, 1), None)
