"""Whole requests for the holdings of a stock, made before the load begins. Pure.

Called by the modules of `rows`, which send them with `bursts`.
"""

from tests.bench.stock import APP_ID, TTL, Stock
from tests.bench.wire import envelope, request_bytes
from tests.integration.service.calling import GET, SYNC


def get(stock: Stock, tokens: tuple[str, ...], number: int) -> bytes:
    """Ask for the certificate of a holding."""
    return _call(GET, tokens, stock.client_of(number), stock.hostname(number))


def sync(stock: Stock, tokens: tuple[str, ...], number: int, value: str) -> bytes:
    """Publish an address for a holding."""
    return sync_hostname(tokens, stock.client_of(number), stock.hostname(number), value)


def get_hostname(tokens: tuple[str, ...], client: int, hostname: str) -> bytes:
    """Ask for the certificate of any hostname of a client."""
    return _call(GET, tokens, client, hostname)


def sync_hostname(tokens: tuple[str, ...], client: int, hostname: str, value: str) -> bytes:
    """Publish an address for any hostname of a client."""
    record = {"type": "A", "value": value, "ttl": TTL}
    return _call(SYNC, tokens, client, hostname, record=record)


def _call(
    method: str, tokens: tuple[str, ...], client: int, hostname: str, **more: object
) -> bytes:
    mine = {"appId": APP_ID, "hostname": hostname}
    body = envelope(method, {"apiToken": tokens[client], "ownership": mine, **more})
    return request_bytes(body)
