"""The dns-01 challenge record: where it goes, adding it and removing it, by exact value only.

    _acme-challenge.<hostname>  TXT  <value>

Values of other issuances and of other people live beside ours, so only the one value is ever added
or removed, and an RRset that is there keeps its TTL. A CNAME at the challenge name moves the record
into another configured zone; one that a wildcard only makes up is no alias, since the record itself
ends it. Must not know orders or remember what was added: that is written down by the caller before.
Called by `certificates`.
"""

from dataclasses import dataclass

import dns.name
import dns.rdata
from dns.rcode import Rcode

from gateway.dns.errors import ChallengeUnavailable, DnsFault, Misplaced, OutcomeUnknown
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_name, to_text
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan
from gateway.dns.records import CNAME, TXT, cname_target, txt_rdata
from gateway.dns.settle import settle
from gateway.dns.update import (
    Add,
    Delete,
    Prerequisite,
    RRsetAbsent,
    RRsetIs,
    RRsetPresent,
    send_update,
    uncut,
)
from gateway.dns.zones import Zone, Zones

CHALLENGE_TTL_SECONDS = 60
MAX_ALIASES = 8
_PREFIX = "_acme-challenge."


@dataclass(frozen=True, slots=True)
class ChallengeTarget:
    """Where a challenge record is added: a name (no trailing dot) in a zone; both can be stored."""

    zone: Zone
    name: str


class Challenges:
    """Serves all zones; holds no state between calls."""

    def __init__(self, zones: Zones, exchange: Exchange) -> None:
        self._zones = zones
        self._exchange = exchange

    async def locate(self, hostname: str, deadline: float) -> ChallengeTarget:
        """Follow the aliases at the hostname's challenge name; reads only.

        Raises: ChallengeUnavailable.
        """
        try:
            name = to_name(_PREFIX + hostname)
        except ValueError:
            raise ChallengeUnavailable(
                f"{hostname} is too long for a certificate: no room for {_PREFIX} before it."
            ) from None
        try:
            return await self._follow(name, deadline)
        except ChallengeUnavailable:
            raise
        except DnsFault as fault:
            raise ChallengeUnavailable(fault.detail, fault.retry_after_seconds) from fault

    def target(self, zone_name: str, name: str) -> ChallengeTarget:
        """A target again from what was stored of it.

        Raises: ChallengeUnavailable when the zone is configured no more.
        """
        for zone in self._zones.all:
            if zone.name == zone_name:
                return ChallengeTarget(zone, name)
        raise ChallengeUnavailable(f"The zone {zone_name} is not configured any more.")

    async def publish(self, target: ChallengeTarget, value: str, deadline: float) -> None:
        """Add one value, unless it is there. May be repeated.

        Raises: DnsFault; after OutcomeUnknown the value may be there.
        """
        name, rdata = to_name(target.name), txt_rdata(value)

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            return decide_challenge(observed, rdata, refusal)

        await settle(self._exchange, target.zone, name, decide, deadline=deadline)

    async def remove(self, target: ChallengeTarget, value: str, deadline: float) -> None:
        """Remove one value. May be repeated, also when it was never added.

        Raises: DnsFault; after any of them the value may still be there, or not.
        """
        changes = (Delete(to_name(target.name), txt_rdata(value)),)
        try:
            await send_update(self._exchange, target.zone, (), changes, deadline=deadline)
        except OutcomeUnknown:
            # No harm in doing it twice; over TCP the answer can't get lost silently.
            await send_update(
                self._exchange, target.zone, (), changes, deadline=deadline, prefer=Over.TCP
            )

    async def _follow(self, name: dns.name.Name, deadline: float) -> ChallengeTarget:
        first = name
        for _ in range(MAX_ALIASES + 1):
            zone = self._zones.holding(name)
            if zone is None:
                via = "" if name == first else f", which {to_text(first)} is an alias of"
                raise ChallengeUnavailable(f"No configured zone holds {to_text(name)}{via}.")
            alias = await self._alias(zone, name, deadline)
            if alias is None:
                return ChallengeTarget(zone, to_text(name))
            name = alias
        raise ChallengeUnavailable(
            f"{to_text(first)} is an alias over more than {MAX_ALIASES} names, or of itself."
        )

    async def _alias(
        self, zone: Zone, name: dns.name.Name, deadline: float
    ) -> dns.name.Name | None:
        """The target of a CNAME that really is at the name."""
        observed = await observe(self._exchange, zone, name, deadline=deadline)
        cname = observed.rrset(CNAME)
        if cname is None:
            return None
        prerequisites = (RRsetIs(name, cname), *uncut(name, zone.apex))
        rcode = await send_update(
            self._exchange, zone, prerequisites, (), deadline=deadline, prefer=Over.TCP
        )
        if rcode == Rcode.YXRRSET:
            raise Misplaced(f"{to_text(name)} lies at or below a delegation or below a DNAME.")
        return cname_target(cname.rdatas[0]) if rcode == Rcode.NOERROR else None


def decide_challenge(observed: Observation, rdata: dns.rdata.Rdata, refusal: Rcode | None) -> Plan:
    """How one TXT value gets to a name, beside whatever is there. Pure.

    Values or a CNAME that a wildcard made up are seen but are not there: only the refusal of a plan
    that took them for real (NXRRSET), or for made up (YXRRSET), tells.

    Raises: ChallengeUnavailable when the name has become an alias.
    """
    name, texts = observed.name, observed.rrset(TXT)
    if texts is not None and rdata in texts.rdatas:
        return Plan(OutcomeKind.UNCHANGED)
    if observed.has(CNAME) and refusal == Rcode.YXRRSET:
        raise ChallengeUnavailable(f"{to_text(name)} has become an alias.", retry_after_seconds=1.0)
    prerequisites: tuple[Prerequisite, ...]
    if texts is not None and refusal != Rcode.NXRRSET:
        # An RRset has one TTL: taking the one that is there changes nothing of other people's.
        ttl, prerequisites = texts.ttl, (RRsetPresent(name, TXT),)
    else:
        ttl = CHALLENGE_TTL_SECONDS
        prerequisites = (RRsetAbsent(name, TXT), RRsetAbsent(name, CNAME))
    return Plan(OutcomeKind.CREATED, prerequisites, (Add(name, ttl, rdata),))
