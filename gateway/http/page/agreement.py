"""What the answers of a zone's servers come to, beside the record as Redis has it published. Pure.

In a word, in sentences, and with what to do about it, as docs/operating.md has it: the page shows
that beside the record, and each server's answer below. Called by `hostname_outside`, and by
`hostname_actions` before a record is withdrawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.dns.answers_now import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gateway.contract import DnsRecord
    from gateway.dns.answers_now import ServerAnswer, ZoneAnswers

_SHOWN: Final = ("A", "AAAA", "CNAME")

_LOOK_AT_IT: Final = (
    "New certificates of the zone wait for every name server: look at that one; `gateway check`"
    " names each that does not answer."
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """`word` and `kind` are a badge's; `sentences` say what was found, `remedies` what to do."""

    word: str
    kind: str
    sentences: tuple[str, ...]
    remedies: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing needs a look at the single servers."""
        return self.kind == "ok"


def agreement(answers: ZoneAnswers, published: DnsRecord | None) -> Agreement | None:
    """What the answers come to; None where no server was asked, or there is nothing to tell."""
    if published is None:
        return _unknown(answers.servers)
    if not answers.servers:
        return None
    primaries = [each for each in answers.servers if each.role is Role.PRIMARY]
    servers = [each for each in answers.servers if each.role is Role.NAME_SERVER]
    differing = [each for each in answers.servers if each.agrees is False]
    found = [
        *_of_edited([each for each in differing if each in primaries], published),
        *_of_silent_primaries([each for each in primaries if each.is_silent]),
        *_of_half_primaries(
            [each for each in primaries if each.is_faulty and each not in differing]
        ),
        *_of_behind([each for each in differing if each in servers], answers, primaries),
        *_of_faulty([each for each in servers if each.is_faulty]),
        *_of_silent([each for each in servers if each.is_silent]),
    ]
    if not found:
        return _whole(answers.servers)
    return Agreement(
        found[0].word,
        "bad" if any(each.kind == "bad" for each in found) else "warn",
        tuple(sentence for each in found for sentence in each.sentences),
        tuple(remedy for each in found for remedy in each.remedies),
    )


def _unknown(servers: Sequence[ServerAnswer]) -> Agreement | None:
    """What lies there though Redis has nothing as published."""
    there = _addresses(servers)
    if not there:
        return None
    return Agreement(
        "not known here",
        "calm",
        (f"The zone has {there}, which Redis does not have as published.",),
        ("A sync is answered record-conflict, unless a marker proves it its client's own.",),
    )


def left_by_withdrawal(answers: ZoneAnswers, published: DnsRecord) -> str | None:
    """What a withdrawal would not do, by what the zone holds; None where it would do all."""
    primaries = [each for each in answers.servers if each.role is Role.PRIMARY]
    telling = [each for each in primaries if each.rcode is not None and each.fault is None]
    if primaries and all(each.is_silent for each in primaries):
        return f"{_names(primaries)} does not answer now: nothing can be withdrawn until it does."
    if not telling or any(each.agrees is not False for each in telling):
        return None
    wanted, there = f"{published.type} {published.value}", _addresses(telling)
    beside = _beside(telling, published)
    if beside:
        return (
            f"The zone has {beside} beside {wanted} now: somebody else wrote that. All of it stays,"
            f" {wanted} too, as nobody's; only the marker goes. To have {wanted} taken out, take"
            f" {beside} out of the zone first."
        )
    if there:
        return (
            f"The zone has {there} now, and not {wanted}: somebody else wrote that. It stays; only"
            " the marker goes."
        )
    return f"The zone does not have {wanted} any more: at most its marker is left to go."


def _whole(servers: Sequence[ServerAnswer]) -> Agreement:
    agreeing = sum(each.agrees is True for each in servers)
    if not agreeing:
        return Agreement("not known", "calm", ("No server of the zone could be asked from here.",))
    return Agreement("as published", "ok", (_all(agreeing, servers),))


def _all(agreeing: int, servers: Sequence[ServerAnswer]) -> str:
    if agreeing == len(servers):
        return f"Every server of the zone has it so ({agreeing} answers)."
    return f"{agreeing} of {len(servers)} have it so; the others can't be asked from here."


def _of_edited(primaries: Sequence[ServerAnswer], published: DnsRecord) -> Iterable[Agreement]:
    """The zone itself holds something else."""
    telling = [each for each in primaries if each.fault is None]
    for each in primaries:
        if each.fault is not None:
            told = f"The primary {each.label} does not tell what is there: {each.fault}"
            yield Agreement("not told", "bad", (told,), ("`gateway check` says what is wrong.",))
    if not telling:
        return
    wanted = f"{published.type} {published.value}"
    there, beside = _addresses(telling), _beside(telling, published)
    if beside:
        yield Agreement(
            "more than published",
            "bad",
            (f"The zone has {beside} beside {wanted}, which was published: somebody wrote that.",),
            (
                "Its client's syncs are answered record-conflict until that is settled.",
                f"If {wanted} alone is right: take {beside} out of the zone by hand.",
                "If both are to stay: withdraw the record here; its marker goes, and all that lies"
                f" there stays, {wanted} too, as nobody's.",
            ),
        )
    elif there:
        yield Agreement(
            "not as published",
            "bad",
            (f"The zone has {there}, where {wanted} was published: somebody else wrote that.",),
            (
                "Its client's syncs are answered record-conflict until that is settled.",
                f"If {wanted} is right: put it back into the zone by hand, alone.",
                "If the other is right: withdraw the record here; its marker goes, what somebody"
                " else wrote stays.",
            ),
        )
    else:
        yield Agreement(
            "not in the zone",
            "bad",
            (f"The zone does not have {wanted} any more: somebody took it out.",),
            ("Its client's next sync publishes it again; withdraw it here if it is to stay away.",),
        )


def _of_silent_primaries(primaries: Sequence[ServerAnswer]) -> Iterable[Agreement]:
    if primaries:
        names = _names(primaries)
        yield Agreement(
            "no answer",
            "warn",
            (f"{names} gave no answer, so what the zone holds is not known.",),
            (
                "While no primary answers, syncs are answered zone-unavailable: look at the DNS"
                " server; `gateway check` says what is wrong.",
            ),
        )


def _of_behind(
    servers: Sequence[ServerAnswer], answers: ZoneAnswers, primaries: Sequence[ServerAnswer]
) -> Iterable[Agreement]:
    """Name servers of the world that say something else than the zone's primary."""
    if not servers or any(each.agrees is False for each in primaries):
        return
    servers = [each for each in servers if each.fault is None]
    if not servers:
        return
    zone_has_it = "The zone has it, and " if any(each.agrees for each in primaries) else ""
    there = _addresses(servers) or "nothing"
    yield Agreement(
        "not everywhere",
        "warn",
        (f"{zone_has_it}{_names(servers)} still answers {there}.",),
        (
            "For some seconds after a change that is usual. If it stays, look at the transfer of"
            f" the zone {answers.zone} to that server: NOTIFY, allow-transfer, its log.",
        ),
    )


def _of_half_primaries(primaries: Sequence[ServerAnswer]) -> Iterable[Agreement]:
    for each in primaries:
        told = f"The primary {each.label} does not tell all that is there: {each.fault}"
        yield Agreement("not told", "warn", (told,), ("`gateway check` says what is wrong.",))


def _of_faulty(servers: Sequence[ServerAnswer]) -> Iterable[Agreement]:
    """Name servers that answer, but of no use, or to some questions only."""
    if servers:
        told = dict.fromkeys(f"{each.label}: {each.fault}" for each in servers)
        word = "not told" if all(each.agrees is False for each in servers) else "no answer"
        yield Agreement(word, "warn", tuple(told), (_LOOK_AT_IT,))


def _of_silent(servers: Sequence[ServerAnswer]) -> Iterable[Agreement]:
    if servers:
        yield Agreement(
            "no answer",
            "warn",
            (f"{_names(servers)} gave no answer.",),
            (_LOOK_AT_IT,),
        )


def _names(servers: Sequence[ServerAnswer]) -> str:
    told = dict.fromkeys(each.label for each in servers)
    return " and ".join(told)


def _addresses(servers: Iterable[ServerAnswer]) -> str:
    return " and ".join(_told_addresses(servers))


def _told_addresses(servers: Iterable[ServerAnswer]) -> list[str]:
    told = dict.fromkeys(
        f"{rrset.type} {value.text}"
        for each in servers
        for rrset in each.rrsets
        if rrset.type in _SHOWN
        for value in rrset.values
    )
    return list(told)


def _beside(servers: Iterable[ServerAnswer], published: DnsRecord) -> str:
    """What lies there beside the very address that was published; empty where that is not there."""
    wanted = f"{published.type} {published.value}"
    told = _told_addresses(servers)
    return " and ".join(each for each in told if each != wanted) if wanted in told else ""
