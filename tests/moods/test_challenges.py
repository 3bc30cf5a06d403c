"""Challenges of a kind nobody knows, and validations that fail."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Exchange, Rewrite
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab

UNKNOWN_CHALLENGE = {
    "type": "dns-persist-01",
    "status": "pending",
    "issuer-domain-names": ["ca.example"],
}


@dataclass(frozen=True)
class Meanwhile:
    """Something happens just before the CA sees the request."""

    name: str
    act: Callable[[], object]

    def __call__(self, exchange: Exchange) -> Answer:
        self.act()
        return exchange.pass_on()


def test_challenge_of_an_unknown_type_without_a_token_is_passed_over(
    moody: MoodLab, mine: Ownership
) -> None:
    def add(authorization: dict[str, Any]) -> None:
        url = authorization["challenges"][0]["url"]
        authorization["challenges"].insert(0, {**UNKNOWN_CHALLENGE, "url": f"{url}-unknown"})

    rule = moody.on(mine, Operation.AUTHORIZATION, Rewrite("unknown challenge", add), times=None)
    assert moody.issued(mine).reasons == set()
    assert rule.hits
    assert len(moody.orders(mine)) == 1


def test_authorization_without_a_dns_challenge_is_refused(moody: MoodLab, mine: Ownership) -> None:
    def leave_out(authorization: dict[str, Any]) -> None:
        kept = [one for one in authorization["challenges"] if one["type"] != "dns-01"]
        authorization["challenges"] = [*kept, {**UNKNOWN_CHALLENGE, "url": kept[0]["url"]}]

    moody.on(mine, Operation.AUTHORIZATION, Rewrite("no dns-01", leave_out))
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "authority-refused")
    assert "dns-01" in answer["message"]
    moody.hurry(mine.hostname)
    moody.issued(mine)


def remove_challenge_records(moody: MoodLab, mine: Ownership) -> None:
    moody.hand.update(f"delete _acme-challenge.{mine.hostname} TXT")


def test_validation_that_fails_is_told_in_the_authoritys_words(
    moody: MoodLab, mine: Ownership
) -> None:
    vanished = Meanwhile("record gone", lambda: remove_challenge_records(moody, mine))
    moody.on(mine, Operation.CHALLENGE, vanished)
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
    assert "unauthorized" in answer["message"]
    assert "TXT" in answer["message"]
    assert f"_acme-challenge.{mine.hostname}" in answer["message"]
    assert answer["retryAfterMs"] > 10_000
    first_key = csr(moody, mine)
    moody.hurry(mine.hostname)
    moody.issued(mine)
    assert len(moody.orders(mine)) == 2
    assert first_key != csr(moody, mine)
    wait_until(lambda: moody.is_tidy(mine), "nothing is left behind")


def csr(moody: MoodLab, mine: Ownership) -> str | None:
    calls = moody.proxy.seen(Operation.FINALIZE, mine.hostname)
    return calls[-1].payload["csr"] if calls and calls[-1].payload else None


def test_words_of_the_authority_are_told_without_its_secrets(
    moody: MoodLab, mine: Ownership
) -> None:
    hidden: dict[str, str] = {}

    def tell_all(authorization: dict[str, Any]) -> None:
        (challenge,) = (one for one in authorization["challenges"] if one["type"] == "dns-01")
        records = moody.hand.records(f"_acme-challenge.{mine.hostname}")
        if not records:
            return
        hidden["TXT value"] = next(iter(records)).split('"')[1]
        hidden["token"] = challenge["token"]
        # As long and as random as a thumbprint and a nonce are.
        hidden["key authorization"] = f"{challenge['token']}.{secrets.token_urlsafe(32)}"
        hidden["nonce"] = secrets.token_urlsafe(16)
        words = f"wanted {hidden['key authorization']} ({hidden['TXT value']}) of "
        words += f"{challenge['token']}, got nothing under the nonce '{hidden['nonce']}'"
        problem = {"type": "urn:ietf:params:acme:error:incorrectResponse", "detail": words}
        authorization["status"] = "invalid"
        challenge.update(status="invalid", error={**problem, "status": 403})

    def end(order: dict[str, Any]) -> None:
        order["status"] = "invalid"

    moody.on(mine, Operation.AUTHORIZATION, Rewrite("tells all", tell_all), times=None)
    moody.on(mine, Operation.ORDER, Rewrite("its end", end), times=None)
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
    assert "incorrectResponse" in answer["message"]
    assert "got nothing" in answer["message"]
    told = [name for name, value in hidden.items() if value in answer["message"]]
    assert len(hidden) == 4
    assert told == []
    assert mine.release() == "released"
