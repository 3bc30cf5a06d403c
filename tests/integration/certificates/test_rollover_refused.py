"""Key rollover at a CA that answers as Pebble does not; each answer is scripted."""

import json
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from gateway.certificates.accounts import StoredAccount
from gateway.certificates.authority import Authority
from gateway.certificates.authority.account import MAX_SUCCESSORS
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.integration.certificates.issuing import MemoryAccountStore
from tests.integration.certificates.scripted import (
    CUT,
    NEW_NONCE,
    ScriptedCa,
    answer,
    bad_nonce,
    directory,
    scripted_ca,
    scripted_settings,
)

KEY, NEXT = (new_private_key(KeyType.ECDSA_P256) for _ in range(2))


def problem(status: int, problem_type: str, detail: str = "no", **headers: str) -> bytes:
    body = {"type": f"urn:ietf:params:acme:error:{problem_type}", "detail": detail}
    return answer(status, json.dumps(body).encode(), nonce="AAAA", **headers)


def account_at(ca: ScriptedCa, number: int) -> bytes:
    return answer(200, b'{"status":"valid"}', nonce="AAAA", location=f"{ca.url}/account/{number}")


NO_ACCOUNT = problem(400, "accountDoesNotExist")
SIGNATURE_REFUSED = problem(400, "malformed")


def account_of(ca: ScriptedCa) -> StoredAccount:
    return StoredAccount(KEY, f"{ca.url}/account/1", NEXT)


async def roll_over(ca: ScriptedCa, *steps: bytes) -> tuple[AuthorityFault | None, StoredAccount]:
    ca.steps += [directory(ca, "keyChange"), NEW_NONCE, *steps]
    store = MemoryAccountStore(account_of(ca))
    authority = Authority(scripted_settings(ca), store)
    try:
        await authority.roll_key_over()
    except AuthorityFault as fault:
        found: AuthorityFault | None = fault
    else:
        found = None
    finally:
        await authority.close()
    assert store.account is not None
    return found, store.account


async def test_conflict_drops_the_next_key_when_it_is_another_accounts() -> None:
    with scripted_ca([]) as ca:
        conflict = answer(409, nonce="AAAA", location=f"{ca.url}/account/2")
        fault, account = await roll_over(ca, conflict, account_at(ca, 2), account_at(ca, 1))
        assert account == replace(account_of(ca), next_key_pem=None)
    assert fault is not None
    assert fault.kind is FaultKind.REFUSED
    paths = [one.path for one in ca.seen if one.method == "POST"]
    assert paths == ["/keyChange", "/newAccount", "/newAccount"]


async def test_conflict_is_a_success_when_the_next_key_is_the_accounts_already() -> None:
    with scripted_ca([]) as ca:
        conflict = answer(409, nonce="AAAA", location=f"{ca.url}/account/1")
        fault, account = await roll_over(ca, conflict, account_at(ca, 1))
        assert account == StoredAccount(NEXT, f"{ca.url}/account/1")
    assert fault is None


async def test_key_is_not_dropped_when_the_account_only_goes_by_another_url_now() -> None:
    with scripted_ca([]) as ca:
        fault, account = await roll_over(
            ca, answer(200, nonce="AAAA"), account_at(ca, 7), NO_ACCOUNT
        )
        assert account == StoredAccount(NEXT, f"{ca.url}/account/7")
    assert fault is None


async def test_change_whose_answer_was_lost_is_found_out() -> None:
    with scripted_ca([]) as ca:
        # The connection ends, and the same request is known when it comes once more.
        steps = [CUT, bad_nonce("AAAA"), account_at(ca, 1)]
        fault, account = await roll_over(ca, *steps)
        assert account == StoredAccount(NEXT, f"{ca.url}/account/1")
    assert fault is None


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (problem(429, "rateLimited", retry_after="60"), FaultKind.RATE_LIMITED),
        (problem(500, "serverInternal"), FaultKind.SERVER_ERROR),
        (problem(403, "unauthorized"), FaultKind.ACCOUNT_REFUSED),
        (SIGNATURE_REFUSED, FaultKind.MALFORMED),
        # Claims success and did nothing.
        (answer(200, nonce="AAAA"), FaultKind.SERVER_ERROR),
    ],
)
async def test_next_key_is_kept_when_the_change_was_not_made(
    refusal: bytes, kind: FaultKind
) -> None:
    with scripted_ca([]) as ca:
        fault, account = await roll_over(ca, refusal, NO_ACCOUNT)
        assert account == account_of(ca)
    assert fault is not None
    assert fault.kind is kind


async def test_next_key_is_kept_when_nobody_can_tell_whose_it_is() -> None:
    with scripted_ca([]) as ca:
        fault, account = await roll_over(
            ca, answer(200, nonce="AAAA"), problem(503, "serverInternal")
        )
        assert account == account_of(ca)
    assert fault is not None
    assert fault.kind is FaultKind.SERVER_ERROR


async def test_rollover_is_refused_where_the_directory_has_none() -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, NO_ACCOUNT]
        store = MemoryAccountStore(replace(account_of(ca), next_key_pem=None))
        authority = Authority(scripted_settings(ca), store)
        with pytest.raises(AuthorityFault) as caught:
            await authority.roll_key_over()
        await authority.close()
    assert caught.value.kind is FaultKind.REFUSED
    assert "keyChange" in caught.value.detail


async def refused_read(
    ca: ScriptedCa, account: StoredAccount, *steps: bytes
) -> tuple[AuthorityFault, StoredAccount | None]:
    """What an order that cannot be read is told as, and the account that is stored afterwards."""
    ca.steps += [directory(ca), NEW_NONCE, *steps]
    store = MemoryAccountStore(account)
    authority = Authority(scripted_settings(ca), store)
    with pytest.raises(AuthorityFault) as caught:
        await authority.read_order(f"{ca.url}/order/1")
    await authority.close()
    return caught.value, store.account


async def test_refusal_passes_when_it_cannot_be_found_out_whose_the_next_key_is() -> None:
    with scripted_ca([]) as ca:
        unknown = problem(503, "serverInternal")
        fault, account = await refused_read(ca, account_of(ca), SIGNATURE_REFUSED, unknown)
        assert account == account_of(ca)
    assert fault.kind is FaultKind.SERVER_ERROR


async def test_account_is_not_forgotten_when_it_may_have_the_next_key() -> None:
    with scripted_ca([]) as ca:
        unknown = problem(503, "serverInternal")
        fault, account = await refused_read(ca, account_of(ca), NO_ACCOUNT, unknown)
        assert account == account_of(ca)
    assert fault.kind is FaultKind.SERVER_ERROR


async def test_refusal_is_told_where_the_authority_finds_no_account_by_its_key_ever() -> None:
    with scripted_ca([]) as ca:
        unfit = problem(400, "malformed")
        fault, account = await refused_read(ca, account_of(ca), SIGNATURE_REFUSED, unfit)
        assert account == account_of(ca)
    assert fault.kind is FaultKind.MALFORMED


async def test_refusal_passes_when_the_next_key_is_refused_too() -> None:
    with scripted_ca([]) as ca:
        steps = [SIGNATURE_REFUSED, account_at(ca, 1), SIGNATURE_REFUSED]
        fault, account = await refused_read(ca, account_of(ca), *steps)
        assert account == StoredAccount(NEXT, f"{ca.url}/account/1")
    assert fault.kind is FaultKind.SERVER_ERROR
    paths = [one.path for one in ca.seen if one.method == "POST"]
    assert paths == ["/order/1", "/newAccount", "/order/1"]


async def test_refused_signature_passes_and_is_told_to_the_operator() -> None:
    with scripted_ca([]) as ca, capture_logs() as lines:
        words = "JWS verification error"
        account = replace(account_of(ca), next_key_pem=None)
        fault, _ = await refused_read(ca, account, problem(400, "malformed", words))
    assert (fault.kind, fault.detail) == (FaultKind.SERVER_ERROR, f"malformed: {words}")
    warned = [line for line in lines if line["log_level"] == "warning"]
    assert [line["detail"] for line in warned] == [f"malformed: {words}"]


class RollingStore(MemoryAccountStore):
    """A fake in place of other processes that roll the key over, once for each look at it."""

    def __init__(self, account: StoredAccount, rollovers: int) -> None:
        super().__init__(account)
        self.rollovers = rollovers

    async def load(self) -> StoredAccount | None:
        account = self.account
        if account is not None and self.rollovers:
            self.rollovers -= 1
            self.account = replace(account, key_pem=new_private_key(KeyType.ECDSA_P256))
        return account


@pytest.mark.parametrize("rollovers", [1, MAX_SUCCESSORS])
async def test_call_goes_on_however_many_rollovers_overtake_it(rollovers: int) -> None:
    with scripted_ca([]) as ca:
        order = {"status": "pending", "finalize": f"{ca.url}/finalize/1"}
        ca.steps += [directory(ca), NEW_NONCE, *[SIGNATURE_REFUSED] * rollovers]
        ca.steps += [answer(200, json.dumps(order).encode())]
        store = RollingStore(StoredAccount(KEY, f"{ca.url}/account/1"), rollovers)
        authority = Authority(scripted_settings(ca), store)
        assert (await authority.read_order(f"{ca.url}/order/1")).status == "pending"
        await authority.close()


async def test_call_that_is_overtaken_again_and_again_passes() -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, *[SIGNATURE_REFUSED] * (MAX_SUCCESSORS + 1)]
        store = RollingStore(StoredAccount(KEY, f"{ca.url}/account/1"), 99)
        authority = Authority(scripted_settings(ca), store)
        with pytest.raises(AuthorityFault) as caught:
            await authority.read_order(f"{ca.url}/order/1")
        await authority.close()
    assert caught.value.kind is FaultKind.SERVER_ERROR


@pytest.mark.parametrize(
    "refusal",
    [
        problem(400, "badSignatureAlgorithm"),
        problem(404, "malformed"),
        problem(500, "serverInternal"),
        problem(429, "rateLimited"),
        answer(400, b"<h1>Sorry</h1>", nonce="AAAA"),
        answer(403, b'{"message":"Forbidden"}', nonce="AAAA"),
        answer(401, nonce="AAAA"),
    ],
)
async def test_account_is_not_replaced_for_what_is_no_word_about_it(refusal: bytes) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, refusal]
        account = replace(account_of(ca), next_key_pem=None)
        store = MemoryAccountStore(account)
        authority = Authority(scripted_settings(ca), store)
        with pytest.raises(AuthorityFault) as caught:
            await authority.replace_account()
        await authority.close()
        assert store.account == account
    assert caught.value.kind is not FaultKind.REFUSED


@pytest.mark.parametrize(
    "refusal",
    [
        problem(400, "malformed", "JWS verification error"),
        problem(401, "unauthorized"),
        problem(403, "unauthorized"),
    ],
)
async def test_account_is_replaced_when_the_authority_itself_refuses_it(refusal: bytes) -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, refusal, account_at(ca, 2)]
        store = MemoryAccountStore(replace(account_of(ca), next_key_pem=None))
        authority = Authority(scripted_settings(ca), store)
        assert (await authority.replace_account()).url == f"{ca.url}/account/2"
        await authority.close()
        assert store.account is not None
        assert store.account.key_pem != KEY


async def test_call_goes_on_when_the_ca_has_no_account_for_the_former_key() -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, NO_ACCOUNT, account_at(ca, 1)]
        order = {"status": "pending", "finalize": f"{ca.url}/finalize/1"}
        ca.steps += [answer(200, json.dumps(order).encode())]
        store = MemoryAccountStore(account_of(ca))
        authority = Authority(scripted_settings(ca), store)
        assert (await authority.read_order(f"{ca.url}/order/1")).status == "pending"
        await authority.close()
        assert store.account == StoredAccount(NEXT, f"{ca.url}/account/1")


async def test_account_is_forgotten_when_the_ca_knows_neither_key() -> None:
    with scripted_ca([]) as ca:
        ca.steps += [directory(ca), NEW_NONCE, NO_ACCOUNT, NO_ACCOUNT]
        store = MemoryAccountStore(account_of(ca))
        authority = Authority(scripted_settings(ca), store)
        with pytest.raises(AuthorityFault) as caught:
            await authority.read_order(f"{ca.url}/order/1")
        await authority.close()
        assert store.account == replace(account_of(ca), url=None)
    assert caught.value.kind is FaultKind.ACCOUNT_MISSING
