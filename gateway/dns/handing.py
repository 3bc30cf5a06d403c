"""Handing a record from one ownership to another: its marker is replaced, its address stays.

One UPDATE, whose prerequisites are the addresses and the TXT RRset as they were read: an address
that anybody edits at that moment keeps the marker that no longer fits it, and foreign TXT values
stay with their TTL. A hand-over that was carried out before, or whose answer was lost, is found
done. What a wildcard makes up is nobody's: there the update is refused. Must not know policy or
databases. Called by `holdings.handing_over`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dns.rcode import Rcode

from gateway.contract import DnsRecord
from gateway.dns.errors import Misplaced, OutcomeUnknown
from gateway.dns.exchange import Exchange
from gateway.dns.marker import Markers
from gateway.dns.names import to_name
from gateway.dns.observe import Observation
from gateway.dns.outcome import OutcomeKind
from gateway.dns.owner import Owner
from gateway.dns.plan import Plan, decide_confirm, decide_hand_over
from gateway.dns.proof import find_ours
from gateway.dns.settle import settle
from gateway.dns.survey import Sight, Verdict, judge_marks, record_of
from gateway.dns.zones import Zones


@dataclass(frozen=True, slots=True)
class Handed:
    """What came of it: `record` is the taker's now, None when the name proves neither of the two.

    `was_done`: it had been handed over before. `sight` is what was read last.
    """

    record: DnsRecord | None
    sight: Sight
    was_done: bool = False


class Handing:
    """Serves all zones; holds no state between calls."""

    def __init__(self, zones: Zones, markers: Markers, exchange: Exchange) -> None:
        self._zones = zones
        self._markers = markers
        self._exchange = exchange

    async def hand_over(
        self,
        giver: Owner,
        taker: Owner,
        *,
        judge: Callable[[DnsRecord], None],
        deadline: float,
        known: Iterable[DnsRecord | None] = (),
    ) -> Handed:
        """Make the giver's record the taker's. May be repeated.

        `judge` raises, whatever it likes, when the taker must not have a record; then nothing more
        is written. `known` are records of the giver as the database has them: a marker that was
        made for one of them goes too.

        Raises: DnsFault; after OutcomeUnknown it may have been handed over.
        """
        zone = self._zones.holding(giver.hostname)
        if zone is None:
            raise Misplaced(f"No configured zone holds {giver.hostname}.")
        last: Handed | None = None
        remembered = tuple(known)

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            nonlocal last
            if refusal == Rcode.NXRRSET:
                last = Handed(None, Sight(Verdict.UNMARKED))
                return decide_confirm(observed, made_up=True)
            plan, last = judged(observed, self._markers, giver, taker, remembered)
            if last.record is not None:
                judge(last.record)
            return plan

        settlement = await settle(
            self._exchange, zone, to_name(giver.hostname), decide, deadline=deadline
        )
        if last is None:  # settle answers only with what was decided
            raise OutcomeUnknown(f"It is not known what became of {giver.hostname}.")
        was_done = last.was_done and settlement.kind is OutcomeKind.UNCHANGED
        return Handed(last.record, last.sight, was_done)


def judged(
    observed: Observation,
    markers: Markers,
    giver: Owner,
    taker: Owner,
    known: Iterable[DnsRecord | None] = (),
) -> tuple[Plan, Handed]:
    """The one update that hands the name's record over, and what is true once it is through. Pure.

    Where the address is the taker's alone already, nothing is left to do but to take away what
    markers the giver has for other records.
    """
    sight = judge_marks(observed, markers, (giver, taker))
    ours = find_ours(observed, giver, markers, known)
    done = record_of(find_ours(observed, taker, markers))
    if done is not None and not ours.addresses:
        plan = decide_confirm(observed, ours.markers, made_up=False)
        return plan, Handed(done, sight, was_done=True)
    record = record_of(ours)
    marker = "" if record is None else markers.sign(taker, record.type, record.value)
    plan = decide_hand_over(observed, ours, marker)
    is_possible = plan.kind is OutcomeKind.UPDATED
    return plan, Handed(record if is_possible else None, sight)
