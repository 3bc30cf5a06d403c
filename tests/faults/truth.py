"""The judge of a hostile-writer run: was a foreign record changed, was an answer untrue?

Responsible for: holding each of the gateway's versions against the calls of that moment, and each
answer against the versions of its time. Pure: from a history and calls to objections.
Must not: know how the gateway decides. It knows the contract, and which marker proves which record
of whom.
Called by: `hostilerun` and its own tests.

A record is an ownership's when its marker lies at the name: the marker itself, and the one address
that it proves, whoever has put them there. Nobody without the key can make a marker, so what the
other writer puts back is what the gateway had published; that is also how an operator mends an
edited address. Everything else is foreign, and for the gateway to leave alone, TTL included. So is
an address that the markers of two ownerships prove, for the one that does not hold the hostname.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.faults.hostilecalls import Call, Ownership, Wish
from tests.faults.zonehistory import Record, Timeline, Version, View

Proofs = Mapping[tuple[str, str], tuple[Ownership, str, str]]
"""From hostname and TXT value to the ownership, and the type and value that it proves."""

Flushes = Sequence[tuple[float, float]]

PUBLISHED = frozenset({"managed-created", "managed-updated", "managed-unchanged"})
ALWAYS = frozenset({"overloaded", "unavailable"})
"""What the gateway may answer at any time; whether it does too often is for the figures to tell."""

_ADDRESSES = frozenset({"A", "AAAA"})
_BLOCKING = _ADDRESSES | {"CNAME"}


class Judge:
    """Knows the whole run. Objections are sentences for whoever has to find the fault."""

    def __init__(
        self, timeline: Timeline, calls: Iterable[Call], proofs: Proofs, flushes: Flushes
    ) -> None:
        self._timeline = timeline
        self._proofs = proofs
        self._flushes = flushes
        self._calls: dict[str, list[Call]] = defaultdict(list)
        for call in calls:
            self._calls[call.owner.hostname].append(call)

    def foreign_changes(self) -> Iterator[str]:
        """What the gateway wrote that it had no right to, version by version."""
        for version in self._timeline.versions:
            if version.is_the_hands:
                continue
            # The gateway may send the updates of several calls as one.
            for part in [version.at(name) for name in sorted(version.names)] or [version]:
                reason = self._unjustified(part)
                if reason:
                    yield f"version {part.serial}: {reason}: {_shown(part)}"

    def untrue_answers(self) -> Iterator[str]:
        """The answers that no version of their time bears out."""
        for calls in self._calls.values():
            for call in calls:
                if not self._is_true(call):
                    views = self._views(call)
                    yield f"{call}: the name was {[_view_shown(view) for view in views]}"

    # ------------------------------------------------------------------ what the gateway wrote

    def _unjustified(self, version: Version) -> str | None:
        """Why no call of that moment may have made this, of one name; None when one may."""
        hostname = min(version.names, default="")
        if hostname not in self._calls:
            return "it is at no caller's hostname"
        under_way = [
            call for call in self._calls[hostname] if call.first < version.serial <= call.last
        ]
        if not under_way:
            return "nobody called"
        before = self._timeline.at(hostname, version.serial - 1)
        after = self._timeline.at(hostname, version.serial)
        faults = {self._unjustified_by(call, version, before, after) for call in under_way}
        return None if None in faults else "; ".join(sorted(filter(None, faults)))

    def _unjustified_by(
        self, call: Call, version: Version, before: View, after: View
    ) -> str | None:
        own = self._addresses(before.records, call)
        return self._wrongly_removed(call, version, before, own) or self._wrongly_added(
            call, version, before, after, own
        )

    def _wrongly_removed(
        self, call: Call, version: Version, before: View, own: frozenset[Record]
    ) -> str | None:
        markers = self._markers(before.records, call.owner)
        if version.removed - own - markers:
            return "a foreign record was changed"
        gone = {record.data for record in version.removed}
        gone -= {record.data for record in version.added}
        stripped = {self._proof(record, call.owner) for record in markers if record.data in gone}
        left = {(record.type, record.value) for record in own if record.data not in gone}
        if left & stripped:
            return "a marker was removed without its address"
        if call.wish is None and left:
            return "an address was left"
        return None

    def _wrongly_added(
        self, call: Call, version: Version, before: View, after: View, own: frozenset[Record]
    ) -> str | None:
        if not version.added:
            return None
        owner, wanted = call.owner, _wanted(call)
        if not {record.data for record in version.added} <= self._may_add(call):
            return "something else was added than was asked for"
        if {record.data for record in self._proven(after.records, owner)} != wanted:
            return "there is not the wanted address with its marker, or another one of its own"
        added = {record for record in version.added if record.data in wanted}
        if not added and not wanted <= {record.data for record in own}:
            return "a foreign address was made its own"
        if any(record.ttl != call.wish.ttl for record in added if call.wish):
            return "it has another TTL than was asked for"
        is_new = not self._markers(before.records, owner)
        if is_new and before.records and not self._may_hold(owner, call):
            return "a hostname was taken that foreign records hold"
        types = {record.type for record in added} if own else _BLOCKING
        if any(record.type in types for record in before.records - own):
            return "an address was added beside a foreign one"
        return None

    def _may_add(self, call: Call) -> set[tuple[str, str, str]]:
        """The address that was asked for, and the marker of it."""
        if call.wish is None:
            return set()
        proven = (call.owner, call.wish.type, call.wish.value)
        markers = {
            (hostname, "TXT", text)
            for (hostname, text), proof in self._proofs.items()
            if proof == proven
        }
        return _wanted(call) | markers

    # ----------------------------------------------------------------- what the gateway answered

    def _is_true(self, call: Call) -> bool:
        if call.status in PUBLISHED and call.record != call.wish:
            return False
        match call.status:
            case "managed-created" | "managed-updated":
                return self._was_written(call)
            case "managed-unchanged":
                return any(self._holds_wish(view, call) for view in self._views(call))
            case "managed-deleted":
                return any(self._is_rid_of(view, call) for view in self._views(call))
            case "record-conflict":
                return self._was_in_conflict(call)
            case "zone-unavailable":
                return any(view.is_cut for view in self._views(call))
            case "mutation-failed":
                # Refused twice at least, by changes of the name or above it.
                return len(self._views(call)) > 2
            case "unauthorized":
                return any(began < call.ended and call.began < end for began, end in self._flushes)
        return call.status in ALWAYS

    def _views(self, call: Call) -> Sequence[View]:
        return self._timeline.during(call.owner.hostname, call.first, call.last)

    def _was_written(self, call: Call) -> bool:
        """By a version of its time, which made the record out of none, or of another.

        Calls of one ownership at once are answered as one. A record that a wildcard made up may be
        said to be replaced: it was answered for the name.
        """
        hostname, owner = call.owner.hostname, call.owner
        for version in self._timeline.versions[call.first - 1 : call.last - 1]:
            if version.is_the_hands or hostname not in version.names:
                continue
            before = self._timeline.at(hostname, version.serial - 1)
            after = self._timeline.at(hostname, version.serial)
            if call.status == "managed-updated":
                is_so = bool(self._proven(before.answered, owner))
            else:
                is_so = not self._proven(before.records, owner)
            if is_so and self._holds_wish(after, call):
                return True
        return False

    def _holds_wish(self, view: View, call: Call) -> bool:
        """Is exactly this record answered for the name, with its marker, and no stale one?"""
        proven = self._proven(view.answered, call.owner)
        wanted = _record(call.owner.hostname, call.wish)
        is_clean = self._marked(view.answered, call) == {(each.type, each.value) for each in proven}
        return not view.is_cut and proven == {wanted} and is_clean

    def _is_rid_of(self, view: View, call: Call) -> bool:
        """No record and no known marker of the ownership's; or the hostname is another's."""
        is_not_its = self._remembered(call) is None and self._may_be_held_by_another(call)
        return is_not_its or not self._marked(view.records, call)

    def _marked(self, records: frozenset[Record], call: Call) -> set[tuple[str, str]]:
        """The records that the ownership's markers prove, of those that the gateway knows.

        They lie at the name, be they one of two, or are what Redis remembers for certain.
        """
        known = {(record.type, record.value) for record in records}
        if (last := self._remembered(call)) is not None:
            known.add((last.type, last.value))
        proofs = {self._proof(record, call.owner) for record in records}
        return {proof for proof in proofs if proof in known}

    def _remembered(self, call: Call) -> Wish | None:
        """The record that Redis remembers for certain: published last, with no other call beside.

        Of two calls at once, the one that is answered last need not be the one that wrote last.
        """
        of_owner = [
            each
            for each in self._calls[call.owner.hostname]
            if each.owner == call.owner and each is not call and each.began < call.ended
        ]
        last = max(of_owner, key=lambda each: each.ended, default=None)
        if last is None or last.ended > call.began or last.status not in PUBLISHED:
            return None
        if any(each.ended > last.began for each in of_owner if each is not last):
            return None
        is_lost = any(last.began < end and began < call.ended for began, end in self._flushes)
        return None if is_lost else last.wish

    def _was_in_conflict(self, call: Call) -> bool:
        """The evidence is what was there, and something of it, or another's hold, was in the way.

        A name below a cut cannot be read, so another's hold may be shown without evidence there.
        A withdrawal never comes to a conflict.
        """
        if call.wish is None:
            return False
        views = self._views(call)
        if any(view.records == call.found and self._is_blocked(view, call) for view in views):
            return True
        was_there = any(
            view.records == call.found or (view.is_cut and not call.found) for view in views
        )
        return was_there and self._is_held_by_another(call, views)

    def _is_blocked(self, view: View, call: Call) -> bool:
        """Does the name hold anything foreign that stands in the wish's way?

        In the way of an ownership that has a record there, or had it last, stand addresses only.
        """
        if call.wish is None or view.is_cut:
            return False
        proven = self._proven(view.records, call.owner)
        provable = self._provable(view.records, call)
        foreign = view.records - provable
        if proven:
            types = frozenset({call.wish.type}) - {record.type for record in proven}
        elif provable or self._remembered(call) is not None:
            types = _BLOCKING
        else:
            return bool(foreign)
        return any(record.type in types for record in foreign)

    def _is_held_by_another(self, call: Call, views: Sequence[View]) -> bool:
        """By an earlier record; or by a call at the same time, where the name is not the caller's.

        Such a call cannot get a name that carries the caller's own record; below a cut nobody sees.
        """
        if self._may_be_held_by_another(call):
            return True
        is_own = all(self._proven(view.records, call.owner) and not view.is_cut for view in views)
        return not is_own and any(
            each.owner != call.owner
            and each.wish is not None
            and each.began < call.ended
            and call.began < each.ended
            for each in self._calls[call.owner.hostname]
        )

    # ------------------------------------------------------------------------ whose is what

    def _others(self, call: Call) -> Iterator[Ownership]:
        """Those that may hold the caller's hostname."""
        owners = {each.owner for each in self._calls[call.owner.hostname]} - {call.owner}
        return (other for other in owners if self._may_hold(other, call))

    def _may_be_held_by_another(self, call: Call) -> bool:
        return any(True for _ in self._others(call))

    def _may_hold(self, owner: Ownership, at: Call) -> bool:
        """May the gateway remember a record of this ownership's, by the answers it gave?"""
        calls = [each for each in self._calls[owner.hostname] if each.owner == owner]
        ends = [
            (each.began, each.ended)
            for each in calls
            if each.wish is None and each.status == "managed-deleted" and each.ended < at.began
        ]
        ends += [(began, end) for began, end in self._flushes if end < at.began]
        return any(
            each.status in PUBLISHED | {"mutation-failed", "overloaded", "unavailable"}
            and each.wish is not None
            and each is not at
            and each.began < at.ended
            and not any(began > each.ended for began, _ in ends)
            for each in calls
        )

    def _markers(self, records: Iterable[Record], owner: Ownership) -> frozenset[Record]:
        return frozenset(
            record
            for record in records
            if record.type == "TXT" and self._proof(record, owner) is not None
        )

    def _proven(self, records: frozenset[Record], owner: Ownership) -> frozenset[Record]:
        """The ownership's address records: alone of their type, their marker beside them."""
        proofs = {self._proof(record, owner) for record in self._markers(records, owner)}
        addresses = [record for record in records if record.type in _ADDRESSES]
        types = [record.type for record in addresses]
        return frozenset(
            record
            for record in addresses
            if types.count(record.type) == 1 and (record.type, record.value) in proofs
        )

    def _addresses(self, records: frozenset[Record], call: Call) -> frozenset[Record]:
        """Those that the call may remove: proven, and not for another that holds the hostname."""
        proven = self._proven(records, call.owner)
        is_unheld = any(began < call.ended and call.began < end for began, end in self._flushes)
        if is_unheld or self._may_hold(call.owner, call):
            return proven
        return proven.difference(*(self._proven(records, other) for other in self._others(call)))

    def _provable(self, records: frozenset[Record], call: Call) -> frozenset[Record]:
        """Of its own, what nobody has to remember anything for: a marker needs its address."""
        known = {(record.type, record.value) for record in records}
        if call.wish is not None:
            known.add((call.wish.type, call.wish.value))
        return frozenset(
            record
            for record in self._proven(records, call.owner) | self._markers(records, call.owner)
            if record.type in _ADDRESSES or self._proof(record, call.owner) in known
        )

    def _proof(self, record: Record, owner: Ownership) -> tuple[str, str] | None:
        proven = self._proofs.get((record.name, record.value))
        return proven[1:] if proven is not None and proven[0] == owner else None


def _record(hostname: str, wish: Wish | None) -> Record | None:
    return None if wish is None else Record(hostname, wish.type, wish.value, wish.ttl)


def _wanted(call: Call) -> set[tuple[str, str, str]]:
    record = _record(call.owner.hostname, call.wish)
    return set() if record is None else {record.data}


def _shown(version: Version) -> str:
    return f"removed {sorted(version.removed)}, added {sorted(version.added)}"


def _view_shown(view: View) -> str:
    made_up = f", answered {sorted(view.answered)}" if view.answered != view.records else ""
    return f"{sorted(view.records)}{made_up}{', cut off' if view.is_cut else ''}"
