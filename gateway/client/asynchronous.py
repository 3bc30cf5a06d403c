"""The asynchronous client: one method for each call of the contract.

Responsible for validating before anything is sent, for repeating what is safe within one deadline,
and for typed results. Works on asyncio and on trio. Used by client programs, by the blocking client
and by the agent.
"""

import random
import secrets
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from inspect import iscoroutinefunction
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import anyio
import httpx

from gateway.client.errors import DeadlinePassed
from gateway.client.exchange import Delivery, Exchange
from gateway.client.judging import judge_certificate
from gateway.client.provisioning import RotateResponse, read_provisioned
from gateway.client.repeating import pause_before_repeating
from gateway.client.tokens import one_word
from gateway.client.waiting import Progress, Waiting
from gateway.contract import (
    PUBLISHED,
    AdminContext,
    AnswerInvalid,
    CapabilitiesResponse,
    Certificate,
    CertificateReady,
    ClientContext,
    ClientSpec,
    ContextResponse,
    DnsRecord,
    EmptyRequest,
    GatewayCapabilities,
    GatewayError,
    GetCertificateRequest,
    GetCertificateResponse,
    Ownership,
    ProvisionRequest,
    ProvisionResponse,
    ReleaseCertificateRequest,
    ReleaseResponse,
    SyncDnsRecordRequest,
    SyncDnsRecordResponse,
    WireModel,
    parse_answer,
    read_answer,
    read_certificate_answer,
    read_request,
    render_request as render,
)

AnOwnership = Ownership | Mapping[str, object]
ARecord = DnsRecord | Mapping[str, object]
ASpec = ClientSpec | Mapping[str, object]

DEFAULT_DEADLINE_SECONDS: Final = 30.0
DEFAULT_WAIT_SECONDS: Final = 300.0

_AnswerT = TypeVar("_AnswerT")
_ModelT = TypeVar("_ModelT", bound=WireModel)
_ProvisionT = TypeVar("_ProvisionT", bound=ProvisionResponse)
_WITHDRAWN: Final = frozenset({"managed-deleted"})


@dataclass(frozen=True, slots=True)
class _Call(Generic[_AnswerT]):
    """A call that is ready to be sent. `may_repeat`: whether a lost answer does no harm."""

    method: str
    request: WireModel
    read: Callable[[object], _AnswerT]
    may_repeat: bool = True


class AsyncGatewayClient:
    """Calls a gateway with one token. An asynchronous context manager.

    An ownership, a record or a spec is given as its model or as an object of the wire, such as
    `{"appId": …, "hostname": …}`. The connections are kept open and used again, so a client belongs
    to the process and the event loop of its first call; elsewhere a call is a `RuntimeError`.

    Args:
        url: the gateway's origin, such as `https://gateway.example.com`.
        token: the token, or a function that gives it for each call (one that is rotated). The
            space around it is left out, as at the end of a file.
        deadline: seconds for a call as a whole, with its repetitions and pauses; above 0.
        ca_file: PEM of the authorities to trust instead of the system's.
        allow_plain_http: send the token unencrypted to another machine.
        on_repeat: a plain function, called with a failure before the call is made again, such as
            to tell a person.
        transport: of httpx, for tests of programs that use this client.

    Each call raises:
        RequestInvalid: with every violation; as a rule before anything is sent.
        CallError: the gateway answered with an error: a class for each code of the contract.
        AnswerInvalid: what came breaks the contract.
        Unreachable: no answer came.
        DeadlinePassed: the deadline passed.

    """

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        *,
        deadline: float = DEFAULT_DEADLINE_SECONDS,
        ca_file: Path | str | None = None,
        allow_plain_http: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
        on_repeat: Callable[[GatewayError], None] | None = None,
    ) -> None:
        if not deadline > 0:
            raise ValueError(f"The deadline must be more than 0 seconds, not {deadline!r}.")
        self._exchange = Exchange(
            url, ca_file, allow_plain_http=allow_plain_http, transport=transport
        )
        _refuse_coroutine("on_repeat", on_repeat)
        if callable(token):
            _refuse_coroutine("token", token)
        self._token = _checked(token)
        self._deadline = deadline
        self._is_owner = True
        self._on_repeat = on_repeat

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._exchange.url)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; may be repeated. Those of `with_token` are another client's."""
        if self._is_owner:
            await self._exchange.close()

    def with_token(self, token: str | Callable[[], str]) -> Self:
        """A client with another token that shares this one's connections, and ends with it."""
        other = copy(self)
        other._token, other._is_owner = _checked(token), False
        return other

    async def get_capabilities(self) -> GatewayCapabilities:
        """What this gateway is configured to do."""
        answer = await self._carry_out(
            _Call("getGatewayCapabilities", EmptyRequest(), _reader(CapabilitiesResponse))
        )
        return answer.capabilities

    async def get_context(self) -> ClientContext | AdminContext:
        """Who the gateway takes the caller for, with the policy in force."""
        answer = await self._carry_out(
            _Call("getGatewayClientContext", EmptyRequest(), _reader(ContextResponse))
        )
        return answer.context

    async def sync_dns_record(
        self, ownership: AnOwnership, record: ARecord
    ) -> SyncDnsRecordResponse:
        """Publish the one address record of an ownership, or replace it.

        What became of it is the answer's `status`; a conflict is no exception.
        """
        request = read_request(
            SyncDnsRecordRequest, {"ownership": _wire(ownership), "record": _wire(record)}
        )
        return await self._sync(request)

    async def delete_dns_record(self, ownership: AnOwnership) -> SyncDnsRecordResponse:
        """Withdraw the address record of an ownership."""
        request = read_request(
            SyncDnsRecordRequest, {"ownership": _wire(ownership), "delete": True}
        )
        return await self._sync(request)

    async def get_certificate(self, ownership: AnOwnership) -> GetCertificateResponse:
        """The certificate of an ownership; starts an issuance if there is none.

        A `Ready` has been judged: it is for this hostname alone, its key fits, its chain is in
        order, and it is valid by this machine's clock. Otherwise it is an `AnswerInvalid`.
        """
        request = read_request(GetCertificateRequest, {"ownership": _wire(ownership)})
        return await self._get_certificate(request, self._deadline)

    async def release_certificate(self, ownership: AnOwnership) -> ReleaseResponse:
        """Give the certificate of an ownership up, with an issuance that is under way."""
        request = read_request(ReleaseCertificateRequest, {"ownership": _wire(ownership)})
        return await self._carry_out(
            _Call("releaseGatewayClientCertificate", request, _reader(ReleaseResponse))
        )

    async def wait_for_certificate(
        self,
        ownership: AnOwnership,
        timeout: float = DEFAULT_WAIT_SECONDS,  # noqa: ASYNC109  (how long it asks, not a limit on it)
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Certificate:
        """Ask for the certificate until it is there, for at most `timeout` seconds.

        Asks when the gateway says it makes sense, with a timeout of 0 once. Failures that pass by
        themselves are waited through. `on_progress` is called after each answer but the last.

        Raises beside what each call may raise:
            IssuanceRefused: there is none, and none is expected in the time that is left.
            ValueError: the timeout is negative.
            TypeError: `on_progress` is a coroutine function, which nobody would wait for.

        """
        _refuse_coroutine("on_progress", on_progress)
        if not timeout >= 0:
            raise ValueError(f"The timeout must be 0 seconds or more, not {timeout!r}.")
        request = read_request(GetCertificateRequest, {"ownership": _wire(ownership)})
        waiting = Waiting(request.ownership.hostname, timeout, anyio.current_time())
        while True:
            left = waiting.left(anyio.current_time()) if timeout else self._deadline
            within = min(self._deadline, left)
            try:
                answer = await self._get_certificate(request, within)
            except GatewayError as failure:
                progress = waiting.after(failure, anyio.current_time())
            else:
                if isinstance(answer, CertificateReady):
                    return answer.certificate
                progress = waiting.after(answer, anyio.current_time())
            if on_progress is not None:
                on_progress(progress)
            await anyio.sleep(progress.next_in_seconds)

    async def ensure_client(self, spec: ASpec) -> ProvisionResponse:
        """Create a client with its first token, or set the whole policy of one that exists.

        For the operator's token. Not repeated if the answer was lost: see `rotate_credential`.
        """
        request = {"action": "ensure", "spec": _wire(spec)}
        return await self._provision(request, ProvisionResponse, may_repeat=False)

    async def rotate_credential(
        self, client_id: str, *, overlap_seconds: int = 0
    ) -> RotateResponse:
        """Make a new token for a client; the present ones live on for the overlap.

        For the operator's token. The new token is answered this once: if the connection breaks
        before the answer, `Unreachable.may_have_arrived` is true, and rotating again makes another.
        """
        request = {
            "action": "rotate",
            "spec": {"clientId": client_id},
            "overlapSeconds": overlap_seconds,
        }
        return await self._provision(request, RotateResponse, may_repeat=False)

    async def revoke_credentials(self, client_id: str) -> ProvisionResponse:
        """Make every token of a client worthless, at once. For the operator's token."""
        request: dict[str, object] = {"action": "revoke", "spec": {"clientId": client_id}}
        return await self._provision(request, ProvisionResponse)

    async def remove_client(
        self, client_id: str, *, release_holdings: bool = False
    ) -> ProvisionResponse:
        """Delete a client; refused while it holds a hostname, unless all of them are released.

        For the operator's token. If an answer was lost, the repetition finds no such client.
        """
        request = {
            "action": "remove",
            "spec": {"clientId": client_id},
            "releaseHoldings": release_holdings,
        }
        return await self._provision(request, ProvisionResponse)

    async def _sync(self, request: SyncDnsRecordRequest) -> SyncDnsRecordResponse:
        answer = await self._carry_out(
            _Call("syncGatewayClientDnsRecord", request, _reader(SyncDnsRecordResponse))
        )
        if answer.hostname != request.ownership.hostname:
            raise AnswerInvalid(f"The answer is about {answer.hostname}, which was not asked for.")
        unasked = PUBLISHED if request.delete else _WITHDRAWN
        if answer.status in unasked:
            raise AnswerInvalid(f"The answer is {answer.status}, which was not asked for.")
        if answer.status in PUBLISHED and answer.record != request.record:
            raise AnswerInvalid(f"The answer {answer.status} names another record than was sent.")
        return answer

    async def _get_certificate(
        self, request: GetCertificateRequest, deadline: float
    ) -> GetCertificateResponse:
        answer = await self._carry_out(
            _Call("getGatewayClientCertificate", request, read_certificate_answer), deadline
        )
        if isinstance(answer, CertificateReady):
            judge_certificate(answer.certificate, request.ownership.hostname, datetime.now(UTC))
        return answer

    async def _provision(
        self, wire: dict[str, object], model: type[_ProvisionT], *, may_repeat: bool = True
    ) -> _ProvisionT:
        request = read_request(ProvisionRequest, wire)
        return await self._carry_out(
            _Call(
                "provisionGatewayClientCredential",
                request,
                partial(read_provisioned, model, request),
                may_repeat,
            )
        )

    async def _carry_out(self, call: _Call[_AnswerT], deadline: float | None = None) -> _AnswerT:
        within = self._deadline if deadline is None else deadline
        last: GatewayError | None = None
        delivery = Delivery()
        with anyio.move_on_after(within) as scope:
            for repetition in count():
                try:
                    return await self._attempt(call, delivery)
                except GatewayError as failure:
                    last = failure
                pause = pause_before_repeating(
                    last,
                    repetition=repetition,
                    may_repeat=call.may_repeat,
                    chance=random.random(),  # noqa: S311  (spreads clients; no secret)
                )
                if pause is None or pause >= scope.deadline - anyio.current_time():
                    raise last
                if self._on_repeat is not None:
                    self._on_repeat(last)
                await anyio.sleep(pause)
        reason = f"; before that: {last.text}" if last is not None else "."
        url = self._exchange.url
        raise DeadlinePassed(
            f"{call.method} at {url} had no answer within {within:g} seconds{reason}",
            may_have_arrived=delivery.may_have_arrived,
        )

    async def _attempt(self, call: _Call[_AnswerT], delivery: Delivery) -> _AnswerT:
        token = self._token if isinstance(self._token, str) else _given(self._token())
        correlation_id = secrets.token_hex(8)
        body = render(call.method, correlation_id, call.request.to_wire(), token)
        answer = await self._exchange.send(body, delivery)
        return call.read(parse_answer(answer, call.method, correlation_id))


def _checked(token: str | Callable[[], str]) -> str | Callable[[], str]:
    if isinstance(token, str):
        return one_word(token)
    if not callable(token):
        raise TypeError(f"The token must be text or a function, not {type(token).__name__}.")
    return token


def _given(token: object) -> str:
    """The token that a program's function gave: it may have read it as bytes, or found none."""
    if not isinstance(token, str):
        raise TypeError(f"The token function must give text, not {type(token).__name__}.")
    return one_word(token)


def _refuse_coroutine(name: str, function: Callable[..., object] | None) -> None:
    if iscoroutinefunction(function):
        raise TypeError(f"{name} must be a plain function: nobody waits for a coroutine.")


def _reader(model: type[_ModelT]) -> Callable[[object], _ModelT]:
    return lambda response: read_answer(model, response)


def _wire(value: WireModel | Mapping[str, object]) -> object:
    if isinstance(value, WireModel):
        return value.to_wire()
    return dict(value) if isinstance(value, Mapping) else value
