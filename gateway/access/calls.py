"""The way of a call: method, token, role and capability, schema and values, pattern, work.

Judged in this order, so that a caller without a token learns nothing of schemas, and one without
the hostname learns nothing of who holds it. Called by `http`; knows no HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway import measures, tracing
from gateway.access import audit
from gateway.access.gate import Admin, Caller, ClientCaller
from gateway.access.tokens import CALLER_KEY
from gateway.contract import (
    AdminContext,
    CapabilitiesResponse,
    ClientContext,
    ContextResponse,
    EmptyRequest,
    Forbidden,
    GetCertificateRequest,
    HandedOut,
    HostnameForbidden,
    MethodUnknown,
    Overloaded,
    ProvisionRequest,
    ReleaseCertificateRequest,
    StatedSync,
    SyncDnsRecordRequest,
    WireModel,
    ownership_in,
    read_request,
    sync_in,
)
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.faults import plain
from gateway.dns.owner import Owner
from gateway.holdings.deeds import of_sync
from gateway.holdings.quotas import QuotaReached
from gateway.holdings.record_answers import target_invalid
from gateway.store.deeds import acting_as
from gateway.store.trail import NO_TRAIL
from gateway.underway import underway

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from gateway.access.gate import Gate
    from gateway.access.provisioning import Provisioning
    from gateway.contract import Ownership, StatedOwnership, Written
    from gateway.holdings.certificates import Certificates
    from gateway.holdings.records import Records
    from gateway.store.routing import Begun
    from gateway.store.trail import Trail


_Response = WireModel | HandedOut


@dataclass(frozen=True, slots=True)
class _Method:
    """One method: who may call it, how its request reads, and what carries it out."""

    request: type[WireModel]
    carry_out: Callable[[Any, Any], Awaitable[_Response]]
    role: type[Caller] | None
    capabilities: tuple[str, ...] = ()


class _Ahead(NamedTuple):
    """Of a call that is likely to be admitted: what it says, and the document on its way."""

    said: StatedOwnership | StatedSync
    document: Begun | None

    def drop(self) -> None:
        """It is needed no more; also where it was used."""
        if self.document is not None:
            self.document.drop()


class Calls:
    """Answers calls. `has_zones` and `issues` say which facilities are configured."""

    def __init__(
        self,
        gate: Gate,
        records: Records,
        certificates: Certificates,
        provisioning: Provisioning,
        *,
        has_zones: bool,
        issues: bool,
        trail: Trail = NO_TRAIL,
    ) -> None:
        self._trail = trail
        self._gate = gate
        self._records = records
        self._certificates = certificates
        self._provisioning = provisioning
        self._facilities = CapabilitiesResponse.of(client_records=has_zones, exact_issuance=issues)
        self._methods: Mapping[str, _Method] = {
            "syncGatewayClientDnsRecord": _Method(
                SyncDnsRecordRequest, self._sync, ClientCaller, ("syncDnsRecords",)
            ),
            "getGatewayClientCertificate": _Method(
                GetCertificateRequest,
                self._get_certificate,
                ClientCaller,
                ("requestCertificates", "readCertificates"),
            ),
            "releaseGatewayClientCertificate": _Method(
                ReleaseCertificateRequest, self._release, ClientCaller, ("requestCertificates",)
            ),
            "getGatewayCapabilities": _Method(EmptyRequest, self._capabilities, None),
            "getGatewayClientContext": _Method(EmptyRequest, self._context, None),
            "provisionGatewayClientCredential": _Method(ProvisionRequest, self._provision, Admin),
        }

    async def answer(
        self, method_name: str, request: dict[str, object], digest: str | None = None
    ) -> Written:
        """The `response` object of a call, written. `digest` is that of its token, if it has one.

        Raises:
            CallError: what the caller is told when the call was not admitted.
            StoreUnavailable: nothing can be decided.
            Contended: too many callers at once on one hostname or client.
        """
        method = self._methods.get(method_name)
        if method is None:
            raise MethodUnknown
        parameters = {name: value for name, value in request.items() if name != CALLER_KEY}
        ahead = self._look_ahead(method, parameters, digest)
        try:
            admitted = await self._gate.admit(request.get(CALLER_KEY), digest)
            caller, actor = admitted.caller, audit.actor_of(admitted.caller)
            credential = actor.name or actor.role.value
            call = underway()
            if call is not None:
                call.credential = credential
            tracing.admitted(credential)
            if not admitted.is_counted or admitted.refusal is not None:
                await self._gate.count(admitted)
            with acting_as(actor):
                try:
                    return (await self._carry_out(caller, method, parameters, ahead)).written()
                except (Forbidden, HostnameForbidden, Overloaded) as refusal:
                    if isinstance(refusal, QuotaReached):
                        measures.limit_reached(refusal.limit)
                    deed = audit.of_refused_call(caller, method_name, parameters, refusal)
                    if deed is not None:
                        self._trail.note(deed)
                    raise
        finally:
            if ahead is not None:
                ahead.drop()

    def _look_ahead(
        self, method: _Method, parameters: dict[str, object], digest: str | None
    ) -> _Ahead | None:
        """What is likely to be read, of a call that is likely to be admitted.

        It is asked for together with what the gate asks, so that there is one wait for both. What
        is judged, and in which order, is the same.
        """
        if not self._gate.knows(digest):
            return None
        if method.request is SyncDnsRecordRequest:
            sync = sync_in(parameters)
            if sync is None or sync.record is None:
                return None
            return _Ahead(sync, self._records.look_ahead(sync.ownership.hostname))
        ownership = ownership_in(parameters) if method.request is GetCertificateRequest else None
        if ownership is None:
            return None
        return _Ahead(ownership, self._certificates.look_ahead(ownership.hostname))

    async def answer_to(
        self, caller: Caller, method_name: str, parameters: dict[str, object]
    ) -> dict[str, Any]:
        """The same object, to a caller that is known already; the method must be one that there is.

        No refusal is counted: a rehearsal is answered here too, and nobody has called.
        """
        method = self._methods[method_name]
        return (await self._carry_out(caller, method, parameters, None)).to_wire()

    async def _carry_out(
        self,
        caller: Caller,
        method: _Method,
        parameters: dict[str, object],
        ahead: _Ahead | None,
    ) -> _Response:
        _demand_role(caller, method)
        if ahead is not None and isinstance(caller, ClientCaller):
            if isinstance(ahead.said, StatedSync):
                return await self._sync(caller, ahead.said, ahead.document)
            owner = _owner(caller, ahead.said)
            return await self._certificates.get(owner, ahead.document)
        return await method.carry_out(caller, read_request(method.request, parameters))

    async def _sync(
        self,
        caller: ClientCaller,
        request: SyncDnsRecordRequest | StatedSync,
        ahead: Begun | None = None,
    ) -> WireModel:
        owner = _owner(caller, request.ownership)
        if request.record is None:
            return await self._records.withdraw(owner)
        if not caller.may_publish(request.record):
            answer = target_invalid(owner.hostname, request.record)
            self._trail.note(of_sync(owner, answer, wanted=request.record))
            return answer
        return await self._records.publish(owner, request.record, ahead)

    async def _get_certificate(
        self, caller: ClientCaller, request: GetCertificateRequest
    ) -> _Response:
        return await self._certificates.get(_owner(caller, request.ownership))

    async def _release(self, caller: ClientCaller, request: ReleaseCertificateRequest) -> WireModel:
        return await self._certificates.release(_owner(caller, request.ownership))

    async def _capabilities(self, _: Caller, __: EmptyRequest) -> WireModel:
        return self._facilities

    async def _context(self, caller: Caller, _: EmptyRequest) -> WireModel:
        if isinstance(caller, Admin):
            return ContextResponse(context=AdminContext())
        client = caller.client
        return ContextResponse(
            context=ClientContext(
                credential_id=caller.credential_id,
                client_id=client.client_id,
                client_type=client.client_type,
                policy_generation=client.policy_generation,
                hostname_patterns=client.hostname_patterns,
                allowed_dns_record_addresses=client.allowed_dns_record_addresses,
                capabilities=client.capabilities,
            )
        )

    async def _provision(self, _: Caller, request: ProvisionRequest) -> WireModel:
        return await self._provisioning.provision(request)


def _demand_role(caller: Caller, method: _Method) -> None:
    if method.role is not None and not isinstance(caller, method.role):
        wanted = "an admin's" if method.role is Admin else "a gateway client's"
        raise Forbidden(None, f"This method needs {wanted} credential.")
    if isinstance(caller, ClientCaller):
        caller.demand_capability(*method.capabilities)


def _owner(caller: ClientCaller, ownership: Ownership | StatedOwnership) -> Owner:
    """The ownership that the call speaks for, once its hostname is the client's to use."""
    caller.demand_hostname(ownership.hostname)
    if tracing.is_recording():
        # An appId may be any word: a token by mistake, too.
        app_id = plain(ownership.app_id, BOUNDS.max_app_id_characters)
        tracing.speaks_for(ownership.hostname, app_id)
    return Owner(caller.client.client_id, ownership.app_id, ownership.hostname)
