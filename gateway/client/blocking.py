"""The blocking client: the asynchronous one, for programs without an event loop.

Responsible for nothing but the crossing: a thread of its own runs the event loop, each method waits
for its result. So that what is repeated, bounded and judged is written once, and a deadline holds
for a server that answers byte by byte too, which blocking sockets cannot do. Used by client
programs and by the command line.
"""

from collections.abc import Awaitable, Callable
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

import httpx

from gateway.client.asynchronous import (
    DEFAULT_DEADLINE_SECONDS,
    DEFAULT_WAIT_SECONDS,
    AnOwnership,
    ARecord,
    ASpec,
    AsyncGatewayClient,
)
from gateway.client.crossing import Crossing
from gateway.client.provisioning import RotateResponse
from gateway.client.waiting import Progress
from gateway.contract import (
    AdminContext,
    Certificate,
    ClientContext,
    GatewayCapabilities,
    GatewayError,
    GetCertificateResponse,
    ProvisionResponse,
    ReleaseResponse,
    SyncDnsRecordResponse,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class GatewayClient:
    """Calls a gateway with one token. A context manager; several threads may share it.

    Arguments, methods and errors are those of `AsyncGatewayClient`; `on_repeat` runs in the
    client's thread. A process that forks makes its client afterwards: threads do not come along,
    so a call in the child is a `RuntimeError`, as it is after `close`. A call that `close` cuts off
    in another thread is `Unreachable`.
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
        self._client = AsyncGatewayClient(
            url,
            token,
            deadline=deadline,
            ca_file=ca_file,
            allow_plain_http=allow_plain_http,
            transport=transport,
            on_repeat=on_repeat,
        )
        self._crossing = Crossing(self._client)
        self._is_owner = True

    def __repr__(self) -> str:
        return repr(self._client).removeprefix("Async")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; may be repeated.

        Those of `with_token` are another client's.
        """
        if self._is_owner:
            self._crossing.close()

    def with_token(self, token: str | Callable[[], str]) -> Self:
        """A client with another token that shares this one's connections, and ends with it."""
        other = copy(self)
        other._client, other._is_owner = self._client.with_token(token), False
        return other

    def get_capabilities(self) -> GatewayCapabilities:
        """What this gateway is configured to do."""
        return self._run(self._client.get_capabilities)

    def get_context(self) -> ClientContext | AdminContext:
        """Who the gateway takes the caller for, with the policy in force."""
        return self._run(self._client.get_context)

    def sync_dns_record(self, ownership: AnOwnership, record: ARecord) -> SyncDnsRecordResponse:
        """Publish the one address record of an ownership, or replace it."""
        return self._run(self._client.sync_dns_record, ownership, record)

    def delete_dns_record(self, ownership: AnOwnership) -> SyncDnsRecordResponse:
        """Withdraw the address record of an ownership."""
        return self._run(self._client.delete_dns_record, ownership)

    def get_certificate(self, ownership: AnOwnership) -> GetCertificateResponse:
        """The certificate of an ownership; starts an issuance if there is none."""
        return self._run(self._client.get_certificate, ownership)

    def release_certificate(self, ownership: AnOwnership) -> ReleaseResponse:
        """Give the certificate of an ownership up, with an issuance that is under way."""
        return self._run(self._client.release_certificate, ownership)

    def wait_for_certificate(
        self,
        ownership: AnOwnership,
        timeout: float = DEFAULT_WAIT_SECONDS,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Certificate:
        """Ask for the certificate until it is there; `on_progress` runs in the client's thread."""
        return self._run(self._client.wait_for_certificate, ownership, timeout, on_progress)

    def ensure_client(self, spec: ASpec) -> ProvisionResponse:
        """Create a client with its first token, or set the whole policy of one that exists."""
        return self._run(self._client.ensure_client, spec)

    def rotate_credential(self, client_id: str, *, overlap_seconds: int = 0) -> RotateResponse:
        """Make a new token for a client; the present ones live on for the overlap."""
        return self._run(self._client.rotate_credential, client_id, overlap_seconds=overlap_seconds)

    def revoke_credentials(self, client_id: str) -> ProvisionResponse:
        """Make every token of a client worthless, at once."""
        return self._run(self._client.revoke_credentials, client_id)

    def remove_client(self, client_id: str, *, release_holdings: bool = False) -> ProvisionResponse:
        """Delete a client; refused while it holds a hostname, unless all of them are released."""
        return self._run(self._client.remove_client, client_id, release_holdings=release_holdings)

    def _run(self, method: Callable[_P, Awaitable[_T]], *args: _P.args, **named: _P.kwargs) -> _T:
        return self._crossing.run(method, *args, **named)
