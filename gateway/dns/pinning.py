"""Pins an update to the very version of the zone that was read: by its SOA, as a prerequisite.

An RRset has one TTL (RFC 2181, 5.2), so whoever adds a record beside others gives all of them its
TTL. It takes theirs, but no prerequisite can ask for a TTL (RFC 2136): somebody who changes it
after it was read would have it changed back. The SOA's serial grows with every change in the zone,
so an update that demands the SOA as it was before the reading finds exactly what was read.

It also fails with every change elsewhere in the zone, so it is used for such additions only, and
tried often. Where the zone is changed too fast for any of the tries, the update goes without: then
only whoever gives that very RRset another TTL within those milliseconds would find it changed back.
The same holds where a server judges updates by another SOA than it answers with (one that signs a
copy of the zone): it refuses a pin although nothing has changed, and gets no second one.

Must not decide what to change, nor send it. Called by `settle`.
"""

from typing import Final

from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.exchange import Exchange
from gateway.dns.observe import Observation
from gateway.dns.plan import Plan
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.records import RRset
from gateway.dns.update import Add, Delete, NameFree
from gateway.dns.zones import Zone

PINS: Final = 16
"""How often a pin is tried, before an update goes without: it must not wait for a zone to rest."""


def needs_pin(plan: Plan, observed: Observation) -> bool:
    """Does an addition join records that stay? Pure."""
    if any(isinstance(prerequisite, NameFree) for prerequisite in plan.prerequisites):
        return False  # What was seen is a wildcard's, or refuses the update.
    gone = {change.rdata for change in plan.changes if isinstance(change, Delete)}
    for change in plan.changes:
        rrset = observed.rrset(change.rdata.rdtype) if isinstance(change, Add) else None
        if rrset is not None and set(rrset.rdatas) - gone - {change.rdata}:
            return True
    return False


async def read_pin(exchange: Exchange, zone: Zone, deadline: float) -> RRset | None:
    """The zone's SOA; None from a server that tells nobody.

    Raises: the faults of `Exchange.ask`.
    """
    reply = await ask_primary(exchange, zone, make_query(zone.apex, RdataType.SOA), deadline)
    found = [
        rrset for name, rrset in reply.answer if rrset.rdtype == RdataType.SOA and name == zone.apex
    ]
    return found[0] if reply.rcode == Rcode.NOERROR and found else None
