"""What `gateway explain` found, for programs: pure. Shows no key. Called by `cli.explain`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gateway.access.foresight import NO_TIME, StepUnknown
from gateway.certificates.events import AuthoritiesHeld, AuthorityChosen
from gateway.certificates.ledger import Granted
from gateway.certificates.outlook import authority_name
from gateway.cli import issuances
from gateway.cli.holding_words import claim_view, record_view
from gateway.views import verdicts
from gateway.views.explanation import Fault

if TYPE_CHECKING:
    from gateway.access.foresight import Coverage, Foreseen
    from gateway.certificates.ledger import Held
    from gateway.dns.situation import NameSeen, ZoneSeen
    from gateway.views.explanation import Explanation


def view(found: Explanation) -> dict[str, Any]:
    """All of it; what is not known is an object with the sentence as `fault`."""
    return {
        "hostname": found.hostname,
        "zones": [zone.name for zone in found.zones],
        "zone": found.zone and _zone_view(found.zone),
        "name": found.name and _name_view(found.name),
        "challenge": {
            "steps": list(found.challenge.steps),
            "target": found.challenge.target and _name_view(found.challenge.target),
            "interruption": found.challenge.interruption and asdict(found.challenge.interruption),
            "interruptionFault": found.challenge.interruption_fault,
            "fault": found.challenge.fault,
        },
        "holding": _holding_view(found),
        "policy": _fault_view(found.coverage)
        if isinstance(found.coverage, Fault)
        else list(map(_coverage_view, found.coverage)),
        "authorities": {name: _order_view(each) for name, each in found.authorities.items()},
        "asker": {
            "clientId": found.asker.client_id,
            "appId": found.asker.app_id,
            "why": found.asker.why,
        },
        "record": found.record.to_wire(),
        "sync": _foreseen_view(found.sync),
        "certificate": {**_foreseen_view(found.certificate), "start": _start_view(found)},
        "notTried": verdicts.promised(found),
    }


def _fault_view(fault: Fault) -> dict[str, Any]:
    return {"fault": fault.sentence}


def _zone_view(seen: ZoneSeen) -> dict[str, Any]:
    return {
        "name": seen.zone.name,
        "key": {"name": seen.zone.key.name, "algorithm": seen.zone.key.algorithm},
        "primaries": [
            {
                "endpoint": str(primary.endpoint),
                "ok": primary.health.ok,
                "detail": primary.health.detail,
                "clockSkewSeconds": primary.health.clock_skew_seconds,
            }
            for primary in seen.primaries
        ],
        "servers": [
            {
                "name": each.server.label,
                "addresses": list(map(str, each.server.addresses)),
                "answers": each.is_answering,
            }
            for each in seen.servers
        ],
        "fault": seen.fault,
    }


def _name_view(name: NameSeen) -> dict[str, Any]:
    return {
        "name": name.name,
        "zone": name.zone.name,
        "state": name.presence.name.lower().replace("_", "-"),
        "records": list(map(asdict, name.records)),
        "markers": [
            {
                "keyId": marker.key_id,
                "ownKey": marker.is_own_key,
                "clientId": marker.owner and marker.owner.client_id,
                "appId": marker.owner and marker.owner.app_id,
                "there": marker.is_there,
                "whole": marker.is_whole,
            }
            for marker in name.markers
        ],
        "fault": name.fault,
    }


def _holding_view(found: Explanation) -> dict[str, Any]:
    document = found.document
    if isinstance(document, Fault):
        return _fault_view(document)
    return {
        "clientId": document.holder and document.holder.client_id,
        "appId": document.holder and document.holder.app_id,
        "claim": claim_view(document),
        "record": record_view(document),
        "issuance": found.outlook and issuances.view(found.outlook, found.authority_names),
    }


def _coverage_view(each: Coverage) -> dict[str, Any]:
    return {
        "clientId": each.client.client_id,
        "patterns": list(each.patterns),
        "capabilities": sorted(each.client.capabilities),
        "allowedDnsRecordAddresses": list(each.client.allowed_dns_record_addresses),
    }


def _order_view(verdict: Granted | Held | Fault) -> dict[str, Any]:
    if isinstance(verdict, Fault):
        return _fault_view(verdict)
    if isinstance(verdict, Granted):
        return {"granted": True}
    return {
        "granted": False,
        "until": verdict.until_ms,
        "by": verdict.by.value,
        "detail": verdict.detail,
    }


def _foreseen_view(foreseen: Foreseen) -> dict[str, Any]:
    return {
        "status": foreseen.status,
        "reason": foreseen.reason,
        "message": foreseen.message,
        "retryAfterMs": foreseen.retry_after_ms,
    }


def _start_view(found: Explanation) -> dict[str, Any] | None:
    """What the first step of an issuance that the request starts would come to."""
    first = found.certificate.first
    if isinstance(first, AuthorityChosen):
        names = found.authority_names
        return {"authority": authority_name(first.directory_url, names)}
    if isinstance(first, AuthoritiesHeld):
        return {"authority": None, "until": first.until_ms, "detail": first.detail}
    if isinstance(first, StepUnknown):
        return {"authority": None, "fault": NO_TIME}
    return None
