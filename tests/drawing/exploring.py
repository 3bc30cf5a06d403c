"""Walks the issuance machine: every issuance it can come to, and what each event makes of it.

Starts with a new issuance and a renewal, and gives whatever comes of them to `advance` again with
every sample that the machine lists for the state, once as a first occurrence and once after long:
in the state for days, and after many passing faults. Times, counters, texts and what decides
nothing are left out of what tells two issuances apart, so that there are few.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from gateway.certificates import machine
from gateway.certificates.events import Command
from gateway.certificates.moves import Moment
from gateway.certificates.states import Issuance, State
from tests.drawing.samples import CERTIFICATE, NOW_MS, Sample, all_samples

NOW = Moment(NOW_MS, 0.5)
LONG_MS = 10 * 86_400_000
MANY_FAULTS = 50

Node = tuple[Issuance, Command | None]
Pair = tuple[State, type]
Edge = tuple[State, State]


class Unexplored(Exception):
    """The machine lists what the walk has no sample for, or never came to."""


@dataclass
class Map:
    """What the walk saw.

    `edges`: the words of the events that lead from one state to another, each with the condition
    that it takes for that, the weakest one seen.
    """

    edges: dict[Edge, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    commands: dict[State, dict[Command, None]] = field(default_factory=lambda: defaultdict(dict))
    pairs: set[Pair] = field(default_factory=set)


def explore(samples: Iterable[Sample] | None = None) -> Map:
    """Walk the whole machine.

    Raises: Unexplored, with all that the machine lists and the walk did not come to.
    """
    by_type: dict[type, list[Sample]] = defaultdict(list)
    for sample in all_samples() if samples is None else samples:
        by_type[type(sample.event)].append(sample)
    found = Map()
    start = [machine.request("issuance", NOW)]
    start.append(machine.request_renewal("issuance", CERTIFICATE, "renewal", NOW))
    unseen: list[Node] = [(each, None) for each in start]
    seen = set(map(_name, unseen))
    while unseen:
        for node in _visit(unseen.pop(0), by_type, found):
            name = _name(node)
            if name not in seen:
                seen.add(name)
                unseen.append(node)
    missing = set(machine._TRANSITIONS) - found.pairs
    if missing:
        listed = ", ".join(sorted(f"{event.__name__} in {state}" for state, event in missing))
        raise Unexplored(f"no sample or no way leads to {listed}")
    return found


def _visit(node: Node, by_type: Mapping[type, Sequence[Sample]], found: Map) -> Iterator[Node]:
    """Everything that can come of one issuance at once; notes what it saw."""
    issuance, command = node
    state = issuance.state
    many = MANY_FAULTS
    fresh = {"faults": 0, "away": 0, "looks": 0, "passed_over": {}, "published_at_ms": None}
    at_first = replace(issuance, changed_at_ms=NOW_MS, **fresh)  # type: ignore[arg-type]
    tired = replace(at_first, faults=many, away=many, looks=many)
    after_long = replace(tired, changed_at_ms=NOW_MS - LONG_MS)
    for listed, event in machine._TRANSITIONS:
        if listed is not state:
            continue
        for sample in by_type[event]:
            if sample.after not in (None, command) or sample.within not in (None, state):
                continue
            found.pairs.add((state, event))
            for before, condition in ((at_first, ""), (after_long, "for too long")):
                step = machine.advance(before, sample.event, NOW)
                reached = step.issuance.state
                if step.command is not None:
                    found.commands[reached][step.command] = None
                conditions = ", ".join(filter(None, (condition, sample.condition)))
                words = found.edges[state, reached]
                seen = words.setdefault(sample.words, conditions)
                words[sample.words] = min(seen, conditions, key=len)
                yield step.issuance, step.command


_VARIED = {
    *("begun_at_ms", "changed_at_ms", "due_at_ms", "told_until_ms", "published_at_ms"),
    "passed_ms",
    *("failures", "orders_lost", "faults", "away", "looks", "passed_over", "reason", "message"),
}
_UNREAD = {
    *("failed_at", "csr", "order_url", "finalize_url", "authorization_url", "certificate_url"),
    "wanted_since_ms",
    *("challenge_url", "challenge_zone", "challenge_key"),
}
"""What the machine carries along and never decides by: what it comes to read leaves this set."""
_TELLING = attrgetter(
    *(each.name for each in fields(Issuance) if each.name not in _VARIED | _UNREAD)
)


def _name(node: Node) -> Hashable:
    """Without what differs from one issuance to the next and decides nothing, or is varied."""
    issuance, command = node
    return _TELLING(issuance), command
