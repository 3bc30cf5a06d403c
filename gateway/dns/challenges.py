"""The dns-01 challenge record: where it goes, adding it and removing it, by exact value only.

    _acme-challenge.<hostname>  TXT  <value>

Values of other issuances and of other people live beside ours, so only the one value is ever added
or removed, and an RRset that is there keeps its TTL. A CNAME at the challenge name moves the record
into another configured zone; one that a wildcard only makes up is no alias, since the record itself
ends it. A record below a name that only a wildcard answers for would end that as well: the name
would be there, without records (an empty non-terminal). So such a place is refused, unless the zone
`interrupts_wildcards`.

Must not know orders or remember what was added: that is written down by the caller before. Called
by `certificates`, and by `holdings` for what can be told beforehand.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

import dns.name
from dns.rcode import Rcode

from gateway.dns.errors import (
    ChallengeUnavailable,
    DnsFault,
    Misplaced,
    OutcomeUnknown,
    ServerRefused,
)
from gateway.dns.exchange import Exchange, Over
from gateway.dns.joining import Joined, send_joined
from gateway.dns.names import CHALLENGE_LABEL, to_name, to_text, upwards
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan
from gateway.dns.primaries import at_a_primary, in_turn
from gateway.dns.records import CNAME, TXT, Rdata, RRset, target_of, txt_rdata
from gateway.dns.settle import settle
from gateway.dns.update import (
    Add,
    Delete,
    NameFree,
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
WILDCARD_RETRY_SECONDS = 60.0
"""When to look again whether a name has got records of its own."""

PINS = 2
"""Fewer than for records: a challenge lives for a minute, and so do most values beside it."""

LONGEST_NAME = 253
_PREFIX = f"{CHALLENGE_LABEL}."


@dataclass(frozen=True, slots=True)
class ChallengeTarget:
    """Where a challenge record is added: a name (no trailing dot) in a zone; both can be stored.

    `seen` is what the name was when it was located.
    """

    zone: Zone
    name: str
    seen: Observation | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Interruption:
    """A name that does not resolve while a challenge lies below it, and the wildcard that it needs.

    Both without a trailing dot.
    """

    name: str
    wildcard: str


class Challenges:
    """Serves all zones; holds no state between calls."""

    def __init__(self, zones: Zones, exchange: Exchange) -> None:
        self._zones = zones
        self._exchange = exchange

    async def locate(
        self, hostname: str, deadline: float, steps: list[str] | None = None
    ) -> ChallengeTarget:
        """Follow the aliases at the hostname's challenge name; reads only. May be repeated.

        Each name on the way is added to `steps`, the last one also when it is of no use.

        What is true now may be over when the record is published: a name that had records then is
        not watched.

        Raises: ChallengeUnavailable.
        """
        path = [challenge_name(hostname)]
        while len(path) <= MAX_ALIASES + 1:
            name = path[-1]
            if steps is not None:
                steps.append(to_text(name))
            zone = self._zones.holding(name)
            if zone is None:
                raise ChallengeUnavailable(f"No configured zone holds {to_text(name)}{_via(path)}.")
            try:
                found = await self._alias(zone, name, hostname, deadline)
            except ChallengeUnavailable:
                raise
            except DnsFault as fault:
                raise _unusable(hostname, path, fault) from fault
            if isinstance(found, Observation):
                return ChallengeTarget(zone, to_text(name), found)
            path.append(found)
            if found in path[:-1]:
                loop = " → ".join(to_text(each) for each in path[path.index(found) :])
                raise ChallengeUnavailable(
                    f"{to_text(path[0])} leads into a loop of aliases: {loop}."
                )
        raise ChallengeUnavailable(
            f"{to_text(path[0])} is an alias over more than {MAX_ALIASES} names."
        )

    async def interruption(self, target: ChallengeTarget, deadline: float) -> Interruption | None:
        """What a record at the target would interrupt, whether its zone allows that or not.

        Reads only; may be repeated. Raises: DnsFault.
        """
        name = to_name(target.name)

        async def ask(at: Zone) -> Interruption | None:
            observed = await observe(self._exchange, at, name, deadline=deadline)
            return await self._interruption(at, observed, deadline)

        return await at_a_primary(self._exchange, target.zone, ask)

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

        Where nothing was at the name when it was located, it is not read again at first: the update
        itself asks whether that is still so. An exchange less of an issuance's five.

        Raises: DnsFault; after OutcomeUnknown the value may be there.
        """
        name, rdata = to_name(target.name), txt_rdata(value)
        if target.seen is not None and not target.seen.rrsets:
            plan = decide_challenge(target.seen, rdata, None)
            if await self._is_done(target.zone, name, plan, deadline):
                return

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            return decide_challenge(observed, rdata, refusal)

        await settle(
            self._exchange,
            target.zone,
            name,
            decide,
            deadline=deadline,
            pins=PINS,
        )

    async def remove(self, target: ChallengeTarget, value: str, deadline: float) -> None:
        """Remove one value. May be repeated, also when it was never added.

        Raises: DnsFault; after any of them the value may still be there, or not.
        """
        name, rdata = to_name(target.name), txt_rdata(value)
        changes = (Delete(name, rdata),)

        async def remove_at(zone: Zone) -> None:
            try:
                await send_update(self._exchange, zone, (), changes, deadline=deadline)
            except OutcomeUnknown:
                # No harm in doing it twice; over TCP the answer can't get lost silently.
                await send_update(
                    self._exchange, zone, (), changes, deadline=deadline, prefer=Over.TCP
                )

        try:
            await at_a_primary(self._exchange, target.zone, remove_at)
        except OutcomeUnknown:
            # Where no reply to an update can be believed, the zone still tells.
            observed = await observe(self._exchange, target.zone, name, deadline=deadline)
            texts = observed.rrset(TXT)
            if observed.may_lag or (texts is not None and rdata in texts.rdatas):
                raise

    async def _is_done(self, zone: Zone, name: dns.name.Name, plan: Plan, deadline: float) -> bool:
        """Send a plan's update, once; whether it is known to have been carried out."""
        at = in_turn(self._exchange, zone)
        if len(at) > 1:
            return False  # the next one may have to be asked
        update = Joined(
            name=name,
            deadline=deadline,
            prerequisites=plan.prerequisites,
            changes=plan.changes,
        )
        try:
            return await send_joined(self._exchange, at[0], update) == Rcode.NOERROR
        except DnsFault:
            return False  # whatever it is, whoever reads the zone next says it better

    async def _alias(
        self, zone: Zone, name: dns.name.Name, hostname: str, deadline: float
    ) -> dns.name.Name | Observation:
        """The target of a CNAME that really is at the name, or what was seen of the name.

        The latter where the record may be added.
        """

        def ask(at: Zone) -> Awaitable[dns.name.Name | Observation]:
            return self._alias_at(at, name, hostname, deadline)

        return await at_a_primary(self._exchange, zone, ask)

    async def _alias_at(
        self, zone: Zone, name: dns.name.Name, hostname: str, deadline: float
    ) -> dns.name.Name | Observation:
        observed = await observe(self._exchange, zone, name, deadline=deadline)
        cname = observed.rrset(CNAME)
        if cname is not None and await self._is_real(zone, name, cname, deadline):
            return target_of(cname.rdatas[0])
        if not zone.interrupts_wildcards:
            interruption = await self._interruption(zone, observed, deadline)
            if interruption is not None:
                raise _interrupting(zone, name, hostname, interruption)
        return observed

    async def _is_real(
        self, zone: Zone, name: dns.name.Name, cname: RRset, deadline: float
    ) -> bool:
        """Is the CNAME at the name itself, and not made up from a wildcard?"""
        prerequisites: tuple[Prerequisite, ...] = (
            RRsetIs(name, cname),
            *uncut(name, zone.apex),
        )
        try:
            rcode = await self._ask(zone, prerequisites, deadline)
        except ServerRefused:
            # A zone that takes no updates: nothing could be added here, so the alias is the way.
            return True
        if rcode == Rcode.YXRRSET:
            raise Misplaced(f"{to_text(name)} lies at or below a delegation or below a DNAME.")
        return rcode == Rcode.NOERROR

    async def _is_used(self, zone: Zone, name: dns.name.Name, deadline: float) -> bool:
        """Are there records at the name itself?"""
        return await self._ask(zone, (NameFree(name),), deadline) == Rcode.YXDOMAIN

    async def _interruption(
        self, zone: Zone, observed: Observation, deadline: float
    ) -> Interruption | None:
        """What a record at the observed name would interrupt."""
        name = observed.name
        # A wildcard that answers for the parent answers for this name as well (RFC 4592), so where
        # nothing was seen nothing can be interrupted. Of the names above only the parent can be:
        # what lies further up is covered by the same wildcard, or is there already, as an apex is.
        if not observed.rrsets or name == zone.apex or name.parent() == zone.apex:
            return None
        parent = name.parent()
        above = await observe(self._exchange, zone, parent, deadline=deadline)
        if not above.rrsets or await self._is_used(zone, parent, deadline):
            return None
        for level in (*upwards(parent.parent(), zone.apex), zone.apex):
            wildcard = dns.name.Name((b"*", *level.labels))
            if await self._is_used(zone, wildcard, deadline):
                return Interruption(to_text(parent), to_text(wildcard))
        return None  # what was read is gone by now

    async def _ask(
        self, zone: Zone, prerequisites: Sequence[Prerequisite], deadline: float
    ) -> Rcode:
        return await send_update(
            self._exchange, zone, prerequisites, (), deadline=deadline, prefer=Over.TCP
        )


def challenge_name(hostname: str) -> dns.name.Name:
    """The name of a hostname's challenge record.

    Raises: ChallengeUnavailable when it would be too long.
    """
    text = _PREFIX + hostname
    try:
        return to_name(text)
    except ValueError:
        raise ChallengeUnavailable(
            f"{hostname} is too long for a certificate: its challenge name, with {_PREFIX} before"
            f" it, would have {len(text)} characters, and {LONGEST_NAME} are possible."
        ) from None


def _interrupting(
    zone: Zone, name: dns.name.Name, hostname: str, interruption: Interruption
) -> ChallengeUnavailable:
    host, wildcard = interruption.name, interruption.wildcard
    return ChallengeUnavailable(
        f"The challenge of {hostname}, at {to_text(name)}, would stop {host} from resolving, which"
        f" only the wildcard {wildcard} answers for: publish an address record for {host}, or set"
        f' wildcard_hosts = "interrupt" for the zone {zone.name}.',
        WILDCARD_RETRY_SECONDS,
    )


def _via(path: Sequence[dns.name.Name]) -> str:
    return "" if len(path) == 1 else f", which {to_text(path[0])} is an alias of"


def _unusable(
    hostname: str, path: Sequence[dns.name.Name], fault: DnsFault
) -> ChallengeUnavailable:
    """A fault of the server or of the place, and, after an alias, which place it is about."""
    detail = fault.detail
    if len(path) > 1:
        detail = f"The challenge of {hostname} belongs at {to_text(path[-1])}{_via(path)}: {detail}"
    return ChallengeUnavailable(detail, fault.retry_after_seconds)


def decide_challenge(observed: Observation, rdata: Rdata, refusal: Rcode | None) -> Plan:
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
