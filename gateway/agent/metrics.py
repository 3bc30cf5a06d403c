"""What Prometheus is told of the agent, as a file for the textfile collector of node-exporter.

Responsible for the gauges, their names and units, and for a file that is whole whenever it is read
and that every user may read. Must not: judge; `status` does. Called by `gateway.agent.service`.

A gauge is there only when its value is known: a certificate that there never was has no date. The
library's own `write_to_textfile` gives the file the mode that the umask leaves, which in a unit
with `UMask=0077` node-exporter cannot read, and a name for each process to what a killed one leaves
behind; so only its text is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from gateway import __version__
from gateway.agent.durable import remove_name, told, write_file
from gateway.agent.status import last_contact_ms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gateway.agent.status import CertificateStatus, OwnershipStatus, RecordStatus

_MODE: Final = 0o644
_MS_PER_SECOND: Final = 1000

_GAUGES: Final = {
    "record_ok": "Whether the wanted address record is published",
    "record_fault": "Whether the last attempt to look after the record failed",
    "record_published": "Whether an address record was ever published",
    "record_published_time_seconds": "When the record was last published, as Unix time",
    "certificate_ok": "Whether the certificate on disk can be served now",
    "certificate_fault": "Whether the last attempt to get the certificate failed",
    "certificate_not_before_seconds": "Start of the certificate's validity, as Unix time",
    "certificate_not_after_seconds": "End of the certificate's validity, as Unix time",
    "certificate_renew_after_seconds": "When the renewal is due, as Unix time",
    "certificate_answered_time_seconds": "When the gateway last had a certificate, as Unix time",
    "hook_ok": "Whether the deploy hook has succeeded for the installed certificate",
    "hook_failures": "How often the deploy hook has failed in a row",
}
_PREFIX: Final = "gateway_agent_"


def registry_of(statuses: Sequence[OwnershipStatus], now_ms: int) -> CollectorRegistry:
    """The gauges for these statuses, as they are at a time in epoch milliseconds. Pure."""
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(_PREFIX + name, text, ["hostname"], registry=registry)
        for name, text in _GAUGES.items()
    }
    for status in statuses:
        values = _record_values(status.record) | _certificate_values(status.certificate)
        for name, value in values.items():
            if value is not None:
                gauges[name].labels(hostname=status.hostname).set(value)
    _add_own(registry, last_contact_ms(statuses), now_ms)
    return registry


def write_textfile(path: Path, statuses: Sequence[OwnershipStatus], now_ms: int) -> None:
    """Write the gauges in place of those in the file. May be repeated; one writer at a time.

    Raises:
        DiskFault: the file is as it was before.

    """
    unfinished = unfinished_textfile(path)
    remove_name(unfinished)
    write_file(unfinished, generate_latest(registry_of(statuses, now_ms)), _MODE)
    with told("write the metrics", path):
        unfinished.replace(path)


def unfinished_textfile(path: Path) -> Path:
    """Where the file is written. Its name must not end in .prom: node-exporter would read it."""
    return path.with_name(f"{path.name}.new")


def _record_values(record: RecordStatus | None) -> dict[str, float | None]:
    if record is None:
        return {}
    return {
        "record_ok": record.is_published,
        "record_fault": record.fault is not None,
        "record_published": record.published is not None,
        "record_published_time_seconds": _seconds(record.published_at_ms),
    }


def _certificate_values(certificate: CertificateStatus | None) -> dict[str, float | None]:
    if certificate is None:
        return {}
    values: dict[str, float | None] = {
        "certificate_ok": certificate.is_usable,
        "certificate_fault": certificate.fault is not None,
        "certificate_not_before_seconds": _seconds(certificate.not_before_ms),
        "certificate_not_after_seconds": _seconds(certificate.not_after_ms),
        "certificate_renew_after_seconds": _seconds(certificate.renew_after_ms),
        "certificate_answered_time_seconds": _seconds(certificate.answered_at_ms),
    }
    if certificate.hook is not None:
        values["hook_ok"] = certificate.hook.is_done
        values["hook_failures"] = certificate.hook.tries
    return values


def _add_own(registry: CollectorRegistry, contact_ms: int | None, now_ms: int) -> None:
    """What is told of the agent itself."""
    info = Gauge(f"{_PREFIX}info", "The agent's version", ["version"], registry=registry)
    info.labels(version=__version__).set(1)
    text = "When the agent last wrote this file, as Unix time"
    Gauge(f"{_PREFIX}last_run_time_seconds", text, registry=registry).set(now_ms / _MS_PER_SECOND)
    if contact_ms is not None:
        text = "When the gateway last did what the agent asked, as Unix time"
        contact = Gauge(f"{_PREFIX}last_contact_time_seconds", text, registry=registry)
        contact.set(contact_ms / _MS_PER_SECOND)


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / _MS_PER_SECOND
