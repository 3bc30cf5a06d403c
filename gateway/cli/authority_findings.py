"""The checks of the certificate authorities behind `gateway check`: what they offer, our accounts.

Responsible for asking every authority of the configuration, all at once and each within a bounded
time, and for the words. One authority suffices to issue: another one that cannot be reached
meanwhile is a warning. What is wrong in the configuration is a fault whoever else answers.

Called by `cli.findings`.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.certificates.accounts import RedisAccountStore
from gateway.certificates.authority.replies import one_line
from gateway.certificates.orders import PASSING, AuthorityFault, FaultKind
from gateway.certificates.sealing import KeyMissing, Keyring, KeyringInvalid, load_keyring
from gateway.cli.finding import Finding, State
from gateway.configured import build_authority
from gateway.store.connection import Store, StoreRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from gateway.certificates.authority import Authority
    from gateway.certificates.orders import AccountView
    from gateway.config import AcmeSettings, Settings

AUTHORITY_LIMIT_SECONDS: Final = 8.0

_LATER: Final = "Check again in a while."
_TOO_LATE: Final = f"no answer within {AUTHORITY_LIMIT_SECONDS:g} s"
_PASSING: Final = PASSING | {FaultKind.RATE_LIMITED}
# Something answers, and not as an authority: passing to an issuance, here most likely a wrong URL.
_NOT_THERE: Final = frozenset({400, 401, 403, 404, 405, 410})


@dataclass(frozen=True, slots=True)
class Entry:
    """One `[[acme]]` table; `place` is what the configuration's faults call it: `acme[0]`."""

    place: str
    acme: AcmeSettings

    @property
    def part(self) -> str:
        """What a finding about the authority is filed under."""
        return f"acme {self.acme.name}"

    @property
    def account_part(self) -> str:
        """What a finding about our account there is filed under."""
        return f"acme account {self.acme.name}"


@dataclass(frozen=True, slots=True)
class _Away:
    """An authority that may be back at any moment; how bad that is depends on the others."""

    part: str
    finding: str
    remedy: str


async def check_directories(settings: Settings) -> AsyncIterator[Finding]:
    """Whether each authority can be reached, is one, and has what is asked of it."""
    seen = await asyncio.gather(*map(_look_at, _entries(settings)))
    for finding in _weighed(seen):
        yield finding


async def check_accounts(settings: Settings, redis_url: str) -> AsyncIterator[Finding]:
    """Our account at each authority that answers; registered where there is none yet.

    Raises StoreUnavailable.
    """
    try:
        keyring = load_keyring(settings.keyring_file)
    except KeyringInvalid:
        return  # told already
    asked = []
    for entry in _entries(settings):
        store = Store(redis_url, replicas=settings.redis.replicas)
        asked.append(_ask_for_account(entry, keyring, store))
    for finding in _weighed(await asyncio.gather(*asked)):
        yield finding


def judge_directory(
    entry: Entry, meta: Mapping[str, object], *, offers_renewal_info: bool
) -> list[Finding]:
    """What an authority says of itself (`meta` of its directory), beside what is asked of it."""
    offers = "says" if offers_renewal_info else "does not say"
    said = [f"{entry.acme.directory} answers", f"it {offers} when to renew (ARI)"]
    profiles = _profiles(meta)
    if profiles:
        said.append(f"its profiles are {', '.join(profiles)}")
    if _wants_binding(meta):
        said.append("it takes bound accounts only (EAB)")
    terms = meta.get("termsOfService")
    if isinstance(terms, str):
        said.append(f"its terms of service are at {one_line(terms)}")
    findings = [Finding(entry.part, State.OK, f"{'; '.join(said)}.")]
    wanted = entry.acme.profile
    if wanted is not None and wanted not in profiles:
        known = f"only {', '.join(profiles)}" if profiles else "nor any other"
        text = f"It has no profile {wanted}, {known}: it refuses every order."
        remedy = f"Correct {entry.place}.profile, or leave it out."
        findings.append(Finding(entry.part, State.FAILED, text, remedy))
    return findings


def _entries(settings: Settings) -> list[Entry]:
    return [Entry(f"acme[{index}]", acme) for index, acme in enumerate(settings.acme)]


def _weighed(answers: Sequence[Sequence[Finding] | _Away]) -> Iterator[Finding]:
    """Every finding; who is away is a warning as long as another one can be used."""
    other_answers = any(
        finding.state is State.OK
        for answer in answers
        if not isinstance(answer, _Away)
        for finding in answer
    )
    for answer in answers:
        if not isinstance(answer, _Away):
            yield from answer
        elif other_answers:
            text = f"{answer.finding.rstrip('.')}; the other authorities are used meanwhile."
            yield Finding(answer.part, State.WARNING, text, answer.remedy)
        else:
            yield Finding(answer.part, State.FAILED, _sentence(answer.finding), answer.remedy)


def _sentence(text: str) -> str:
    return f"{text.rstrip('.')}."  # a CA's own words may be one already


async def _look_at(entry: Entry) -> list[Finding] | _Away:
    remedy = f"Check {entry.place}.directory and {entry.place}.ca_bundle, and the way to it."
    try:
        # Reading the directory takes no account: neither the store nor the keyring is used.
        async with (
            asyncio.timeout(AUTHORITY_LIMIT_SECONDS),
            _authority(entry.acme, Store("unix:///"), Keyring(())) as authority,
        ):
            await authority.probe()
            return judge_directory(
                entry,
                await authority.directory_meta(),
                offers_renewal_info=await authority.offers_renewal_info(),
            )
    except TimeoutError:
        return _Away(entry.part, f"{entry.acme.directory}: {_TOO_LATE}", remedy)
    except AuthorityFault as fault:
        text = f"{entry.acme.directory}: {fault.detail}"
        if fault.kind in _PASSING and fault.http_status not in _NOT_THERE:
            return _Away(entry.part, text, remedy)
        return [Finding(entry.part, State.FAILED, _sentence(text), remedy)]


async def _ask_for_account(entry: Entry, keyring: Keyring, store: Store) -> list[Finding] | _Away:
    part, remedy = entry.account_part, f"Check {entry.place}.contact and {entry.place}.eab."
    accounts = RedisAccountStore(store, keyring, entry.acme.directory)
    is_there = False
    try:
        async with (
            asyncio.timeout(AUTHORITY_LIMIT_SECONDS),
            _authority(entry.acme, store, keyring) as authority,
        ):
            await authority.probe()
            is_there = True
            return [await _account_finding(entry, authority, accounts)]
    except TimeoutError:
        text = f"It was asked for the account: {_TOO_LATE}"
        return _Away(part, text, _LATER) if is_there else []
    except AuthorityFault as fault:
        if not is_there:
            return []  # the directory's finding tells
        if fault.kind in _PASSING:
            return _Away(part, fault.detail, _LATER)
        return [Finding(part, State.FAILED, _sentence(fault.detail), remedy)]
    except KeyMissing:
        text = "The stored account key does not open: it was sealed under another keyring."
        return [Finding(part, State.FAILED, text, "Put the former key back into the keyring.")]
    except StoreRefused as fault:
        return [Finding(part, State.FAILED, f"{fault}.")]


async def _account_finding(
    entry: Entry, authority: Authority, accounts: RedisAccountStore
) -> Finding:
    known = await accounts.load()
    has_account = known is not None and known.url is not None
    wants_binding = _wants_binding(await authority.directory_meta())
    if wants_binding and not has_account and entry.acme.eab is None:
        text = "It takes accounts only that are bound to one it knows (EAB), and none is given."
        remedy = f"Ask it for a key id and an HMAC key, and set {entry.place}.eab."
        return Finding(entry.account_part, State.FAILED, text, remedy)
    replacing = f"gateway accounts replace {entry.acme.name}"
    try:
        account = await _described(authority)
    except AuthorityFault as fault:
        if fault.kind is not FaultKind.ACCOUNT_REFUSED or not has_account:
            raise
        return Finding(entry.account_part, State.FAILED, _sentence(fault.detail), replacing)
    if account.status != "valid":
        text = f"The account {account.url} is {account.status}."
        return Finding(entry.account_part, State.FAILED, text, replacing)
    new = "" if known is not None and known.url == account.url else "now "
    text = f"The authority {new}has the account {account.url}."
    return Finding(entry.account_part, State.OK, text)


async def _described(authority: Authority) -> AccountView:
    """The account as the authority has it; registered where there is none, or none any more."""
    await authority.ensure_account()
    try:
        return await authority.describe_account()
    except AuthorityFault as fault:
        if fault.kind is not FaultKind.ACCOUNT_MISSING:
            raise
    await authority.ensure_account()
    return await authority.describe_account()


def _wants_binding(meta: Mapping[str, object]) -> bool:
    return meta.get("externalAccountRequired") is True


def _profiles(meta: Mapping[str, object]) -> list[str]:
    profiles = meta.get("profiles")
    return [one_line(name) for name in profiles] if isinstance(profiles, dict) else []


@contextlib.asynccontextmanager
async def _authority(
    acme: AcmeSettings, store: Store, keyring: Keyring
) -> AsyncIterator[Authority]:
    authority = build_authority(acme, store, keyring)
    try:
        yield authority
    finally:
        await authority.close()
        await store.close()
