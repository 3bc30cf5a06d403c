"""What `gateway agent check` asks others: the gateway, and the sources of addresses.

Responsible for: whether the token is taken and whose it is; what the gateway and the client can do;
whether each ownership of the configuration is within that. Whether a zone serves a hostname, and
whether somebody else holds it, only the gateway knows, and says when it is asked for. Must not:
publish, or ask for a certificate.
Called by `cli.agent_check`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agent.addresses import AddressUnknown, CommandAddress, InterfaceAddress, address
from gateway.agent.keepers import LOOKS_AT_ONCE
from gateway.agent.memory import Memories
from gateway.agent.rounds import fault_of_call
from gateway.agent.status import source_words
from gateway.cli.client_words import begun
from gateway.cli.finding import Finding, State
from gateway.client import (
    AsyncGatewayClient,
    ClientContext,
    DeadlinePassed,
    DnsRecord,
    GatewayError,
    Internal,
    Overloaded,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from gateway.client.tokens import TokenUnreadable
from gateway.contract.allowances import compile_allowance
from gateway.contract.patterns import compile_patterns

if TYPE_CHECKING:
    from gateway.agent.config import AgentSettings, OwnershipSettings, RecordSettings
    from gateway.client import AdminContext, GatewayCapabilities
    from gateway.client.tokens import TokenSource

DEADLINE_SECONDS: Final = 5.0
"""For each of the two calls; a gateway answers at once."""

_NO_TOKEN: Final = "none"  # noqa: S105  (sent where there is none: the answer shows who answers)
_SHOWN: Final = 6

_LET_IN: Final = "the operator changes the client with `gateway clients ensure`"
_REMEDIES: Final[dict[type[GatewayError], str]] = {
    DeadlinePassed: "try again later; is `gateway.url` right, and does the gateway run?",
    Internal: "tell the operator the incident",
    Overloaded: "try again later",
    Unavailable: "try again later",
    Unreachable: "is `gateway.url` right, does the gateway run, and may this machine reach it?",
}
_NOT_TRUSTED: Final = (
    "if another authority signed it, name that one's PEM file in `gateway.ca_file`"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What asking the gateway came to. `client` is None where it is not known.

    `is_away`: the gateway could not be asked, and trying again later makes sense.
    """

    findings: list[Finding]
    client: ClientContext | None = None
    is_away: bool = False


async def ask_gateway(settings: AgentSettings) -> Asked:
    """Whether the token can be read, the gateway answers, and what it can do for this client."""
    token, findings = _read_token(settings.gateway.token)
    try:
        gateway = AsyncGatewayClient(
            settings.gateway.url,
            _NO_TOKEN if token is None else token,
            deadline=DEADLINE_SECONDS,
            ca_file=settings.gateway.ca_file,
            allow_plain_http=settings.gateway.allow_plain_http,
        )
    except ValueError as fault:
        return Asked([*findings, Finding("gateway", State.FAILED, str(fault))])
    url = settings.gateway.url
    async with gateway:
        try:
            context = await gateway.get_context()
            capabilities = await gateway.get_capabilities()
        except Unauthorized as refused:
            return Asked([*findings, _unauthorized(refused, url, has_token=token is not None)])
        except GatewayError as error:
            return Asked([*findings, _failed(error)], is_away=fault_of_call(error).mends)
    found, client = _judge_context(context, url)
    if client is not None:
        found += _judge_abilities(settings, client, capabilities)
    return Asked([*findings, *found], client)


async def check_ownerships(settings: AgentSettings, client: ClientContext | None) -> list[Finding]:
    """Whether the client may have each hostname, and publish what its source gives now."""
    looks, memories = asyncio.Semaphore(LOOKS_AT_ONCE), Memories(settings.state_dir)

    async def check(each: OwnershipSettings) -> list[Finding]:
        findings = [] if client is None else _judge_hostname(each, client)
        if each.record is not None:
            async with looks:
                published = memories.read(each.hostname).memory.published
                findings.append(await _look(each, each.record, published, client))
        return findings

    return [
        finding
        for found in await asyncio.gather(*map(check, settings.ownerships))
        for finding in found
    ]


def _read_token(source: TokenSource) -> tuple[str | None, list[Finding]]:
    try:
        token = source.read()
    except TokenUnreadable as unreadable:
        remedy = {
            "file": "put the token there, readable for the agent's user only (0600)",
            "env": "set it where the agent is started",
            "credential": "`gateway agent check --help` shows how to check as the unit runs",
        }[source.kind]
        return None, [Finding("token", State.FAILED, f"{begun(str(unreadable))}.", remedy)]
    warning = source.warning()
    if warning is not None:
        said, _, remedy = warning.rpartition(": ")
        return token, [Finding("token", State.WARNING, f"{begun(said)}.", remedy)]
    return token, [Finding("token", State.OK, f"{begun(str(source))} can be read.")]


def _unauthorized(refused: Unauthorized, url: str, *, has_token: bool) -> Finding:
    if not has_token:
        said = f"{url} answers; what it knows of this client is not known without a token."
        return Finding("gateway", State.WARNING, said)
    remedy = "ask the operator for a new token (`gateway clients rotate`)"
    return Finding("gateway", State.FAILED, refused.text, remedy)


def _failed(error: GatewayError) -> Finding:
    if isinstance(error, Unreachable) and error.is_lasting:
        return Finding("gateway", State.FAILED, error.text, _NOT_TRUSTED)
    kinds = (kind for kind in type(error).__mro__ if kind in _REMEDIES)
    remedy = next((_REMEDIES[kind] for kind in kinds), "is `gateway.url` that of a gateway?")
    return Finding("gateway", State.FAILED, error.text, remedy)


def _judge_context(
    context: ClientContext | AdminContext, url: str
) -> tuple[list[Finding], ClientContext | None]:
    if isinstance(context, ClientContext):
        said = f"{url} answers and knows the token: it is that of {context.client_id}."
        return [Finding("gateway", State.OK, said)], context
    remedy = "make a client with `gateway clients ensure`, and use its token"
    said = f"{url} answers, but the token is the operator's own, who has no hostnames."
    return [Finding("gateway", State.FAILED, said, remedy)], None


def _judge_abilities(
    settings: AgentSettings, client: ClientContext, gateway: GatewayCapabilities
) -> list[Finding]:
    """What the gateway, or the client, can do at all, as far as the configuration needs it."""
    wants_records = any(each.record is not None for each in settings.ownerships)
    wants_certificates = any(each.certificate is not None for each in settings.ownerships)
    findings = [
        Finding("gateway", State.FAILED, f"This gateway {lack}.", "ask its operator")
        for is_wanted, is_there, lack in (
            (wants_records, gateway.dns.client_records, "has no zone to publish records in"),
            (wants_certificates, gateway.certificates.exact_issuance, "obtains no certificates"),
        )
        if is_wanted and not is_there
    ]
    needed = ["syncDnsRecords"] if wants_records else []
    needed += ["requestCertificates", "readCertificates"] if wants_certificates else []
    missing = [name for name in needed if name not in client.capabilities]
    if missing:
        said = f"{client.client_id} lacks {_listed(missing)}."
        findings.append(Finding("client", State.FAILED, said, _LET_IN))
    return findings


def _judge_hostname(each: OwnershipSettings, client: ClientContext) -> list[Finding]:
    patterns = client.hostname_patterns
    if compile_patterns(patterns).allows(each.hostname):
        return [Finding(each.hostname, State.OK, f"{client.client_id} may have it.")]
    said = f"{client.client_id} may not have it: its patterns are {_listed(patterns)}."
    return [Finding(each.hostname, State.FAILED, said, f"{_LET_IN}; or correct `hostname`")]


async def _look(
    each: OwnershipSettings,
    settings: RecordSettings,
    published: DnsRecord | None,
    client: ClientContext | None,
) -> Finding:
    """What the source gives now, and whether the client may publish that."""
    source, hostname = settings.source, each.hostname
    try:
        value = await address(source, None if published is None else published.value)
    except AddressUnknown as unknown:
        remedy = "correct `value`"
        if isinstance(source, InterfaceAddress):
            remedy = "`ip address` shows what there is; correct `interface` or `type`"
        if isinstance(source, CommandAddress):
            remedy = "run it by hand as the agent's user; it must print one address, and end with 0"
        return Finding(hostname, State.FAILED, f"{begun(str(unknown))}.", remedy)
    record = DnsRecord.of(value, settings.ttl)
    said = f"{record.type} {value} ({source_words(source)})"
    if client is None or compile_allowance(client.allowed_dns_record_addresses).allows(record):
        return Finding(hostname, State.OK, f"The source gives {said}.")
    allowed = _listed(client.allowed_dns_record_addresses)
    refused = f"{client.client_id} may not publish {said}: its addresses are {allowed}."
    return Finding(hostname, State.FAILED, refused, f"{_LET_IN}; or correct the source")


def _listed(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - _SHOWN
    return (", ".join(names[:_SHOWN]) or "none") + (f" and {more} more" if more > 0 else "")
