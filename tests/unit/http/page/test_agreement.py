"""What the answers of a zone's servers come to, and what is said to be done about it."""

import pytest

from gateway.contract import DnsRecord
from gateway.dns.answers_now import Role, RRsetSeen, ServerAnswer, ValueSeen, ZoneAnswers
from gateway.http.page.agreement import Agreement, agreement, left_by_withdrawal

PUBLISHED = DnsRecord.of("198.51.100.4")


def server(
    label: str, *values: str, agrees: bool | None = False, role: Role = Role.NAME_SERVER
) -> ServerAnswer:
    rrsets = (RRsetSeen("A", 300, tuple(map(ValueSeen, values))),) if values else ()
    return ServerAnswer(label, role, f"{label}:53", "NOERROR", None, rrsets, agrees)


def primary(*values: str, agrees: bool | None = False) -> ServerAnswer:
    return server("ns1", *values, agrees=agrees, role=Role.PRIMARY)


def silent(label: str, role: Role = Role.NAME_SERVER) -> ServerAnswer:
    return ServerAnswer(label, role, f"{label}:53", fault="It gave no answer.", is_silent=True)


def told(*servers: ServerAnswer) -> Agreement:
    found = agreement(ZoneAnswers("example.test", servers), PUBLISHED)
    assert found is not None
    return found


def test_servers_that_all_have_the_record_are_well() -> None:
    found = told(primary(PUBLISHED.value, agrees=True), server("ns2", agrees=True))
    assert (found.word, found.kind, found.remedies) == ("as published", "ok", ())
    assert found.is_whole


def test_edited_address_is_told_once_with_what_to_do() -> None:
    found = told(primary("203.0.113.9"), server("ns1", "203.0.113.9"), server("ns2", "203.0.113.9"))
    assert (found.word, found.kind) == ("not as published", "bad")
    assert found.sentences == (
        "The zone has A 203.0.113.9, where A 198.51.100.4 was published: somebody else wrote that.",
    )
    assert any("put it back into the zone by hand" in each for each in found.remedies)
    assert any("withdraw the record here" in each for each in found.remedies)


def test_record_that_was_taken_out_comes_back_with_the_next_sync() -> None:
    found = told(primary(), server("ns2"))
    assert (found.word, found.kind) == ("not in the zone", "bad")
    assert "next sync publishes it again" in found.remedies[0]


def test_server_that_lags_is_no_edited_zone() -> None:
    found = told(primary(PUBLISHED.value, agrees=True), server("ns2", "203.0.113.9"))
    assert (found.word, found.kind) == ("not everywhere", "warn")
    assert found.sentences == ("The zone has it, and ns2 still answers A 203.0.113.9.",)


def test_server_without_an_answer_is_not_said_to_have_another_record() -> None:
    found = told(primary(PUBLISHED.value, agrees=True), silent("ns2"))
    assert (found.word, found.kind) == ("no answer", "warn")
    assert found.sentences == ("ns2 gave no answer.",)


def test_primary_without_an_answer_leaves_the_zone_unknown() -> None:
    found = told(silent("ns1", Role.PRIMARY), server("ns2", "203.0.113.9"))
    assert (found.word, found.kind) == ("no answer", "warn")
    assert found.sentences[0].startswith("ns1 gave no answer, so what the zone holds")
    assert found.sentences[1] == "ns2 still answers A 203.0.113.9."


def test_primary_that_refuses_is_told_with_its_fault() -> None:
    refusing = ServerAnswer(
        "ns1", Role.PRIMARY, "ns1:53", "REFUSED", "It answers REFUSED.", (), False
    )
    found = told(refusing)
    assert (found.word, found.kind) == ("not told", "bad")
    assert found.sentences == ("The primary ns1 does not tell what is there: It answers REFUSED.",)


def faulty(agrees: bool | None, fault: str, role: Role = Role.NAME_SERVER) -> ServerAnswer:
    return ServerAnswer("ns2", role, "ns2:53", "NOERROR", fault, (), agrees)


@pytest.mark.parametrize("agrees", [None, True])
def test_server_that_answers_half_is_no_server_that_has_it_so(agrees: bool | None) -> None:
    half = "It answers the other questions, and not that for A: no answer came."
    found = told(primary(PUBLISHED.value, agrees=True), faulty(agrees, half))
    assert (found.word, found.kind, found.is_whole) == ("no answer", "warn", False)
    assert found.sentences == (f"ns2: {half}",)
    assert "wait for every name server" in found.remedies[0]
    assert told(faulty(agrees, half, Role.PRIMARY)).sentences == (
        f"The primary ns2 does not tell all that is there: {half}",
    )


def test_server_that_tells_nothing_is_told_with_its_fault_and_not_as_one_that_lags() -> None:
    for fault in ("It answers REFUSED: it tells nobody.", "It answers without authority."):
        found = told(primary(PUBLISHED.value, agrees=True), faulty(False, fault))
        assert (found.word, found.kind) == ("not told", "warn")
        assert found.sentences == (f"ns2: {fault}",)
        assert not any("transfer" in each for each in found.remedies)


def test_second_address_is_told_as_one_beside_what_was_published() -> None:
    found = told(primary(PUBLISHED.value, "203.0.113.5"))
    assert (found.word, found.kind) == ("more than published", "bad")
    assert found.sentences == (
        "The zone has A 203.0.113.5 beside A 198.51.100.4, which was published: somebody wrote"
        " that.",
    )
    assert any("A 198.51.100.4 too, as nobody's" in each for each in found.remedies)


def test_servers_that_cannot_be_asked_from_here_are_no_fault() -> None:
    far = server("ns6", agrees=None)
    assert told(primary(PUBLISHED.value, agrees=True), far).kind == "ok"
    assert told(far).word == "not known"


def test_nothing_is_compared_where_nothing_is_published() -> None:
    assert agreement(ZoneAnswers("example.test", (primary(agrees=None),)), None) is None
    assert agreement(ZoneAnswers(None), PUBLISHED) is None


def test_what_lies_there_unknown_to_redis_is_told() -> None:
    found = agreement(ZoneAnswers("example.test", (primary("203.0.113.9", agrees=None),)), None)
    assert found is not None
    assert (found.kind, found.is_whole) == ("calm", False)
    assert found.sentences == (
        "The zone has A 203.0.113.9, which Redis does not have as published.",
    )


def left(*servers: ServerAnswer) -> str | None:
    return left_by_withdrawal(ZoneAnswers("example.test", servers), PUBLISHED)


def test_withdrawal_is_warned_of_what_it_would_leave() -> None:
    assert left(primary(PUBLISHED.value, agrees=True), server("ns2", "203.0.113.9")) is None
    assert left(primary("203.0.113.9")) == (
        "The zone has A 203.0.113.9 now, and not A 198.51.100.4: somebody else wrote that. It"
        " stays; only the marker goes."
    )
    assert left(primary()) == (
        "The zone does not have A 198.51.100.4 any more: at most its marker is left to go."
    )


def test_withdrawal_is_warned_that_the_published_address_stays_beside_another() -> None:
    assert left(primary(PUBLISHED.value, "203.0.113.5")) == (
        "The zone has A 203.0.113.5 beside A 198.51.100.4 now: somebody else wrote that. All of it"
        " stays, A 198.51.100.4 too, as nobody's; only the marker goes. To have A 198.51.100.4"
        " taken out, take A 203.0.113.5 out of the zone first."
    )


def test_withdrawal_is_warned_of_a_zone_that_does_not_answer() -> None:
    assert left(silent("ns1", Role.PRIMARY), server("ns2", agrees=True)) == (
        "ns1 does not answer now: nothing can be withdrawn until it does."
    )
    assert left() is None
