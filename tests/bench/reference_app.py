"""The reference of "get ready": the least that a Starlette endpoint can do for such an answer.

Two Redis GETs by redis.asyncio, one AES-GCM open, 6 KB of JSON. No token, no policy, no limit, no
log. `uvicorn --factory tests.bench.reference_app:app`, with Redis' URL and the key (hex) in the
environment; `stock` stores what it reads. Called by `ready`.
"""

import os
import secrets
from collections.abc import Mapping
from typing import Any

import redis.asyncio
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from redis import Redis
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

URL_VARIABLE = "REFERENCE_REDIS"
KEY_VARIABLE = "REFERENCE_KEY"
PROOF = b'"client"'

_CLIENT, _DOCUMENT = "reference:client", "reference:document"
_CLIENT_BYTES, _DOCUMENT_BYTES = 300, 5_700
_NONCE_BYTES = 12


def stock(redis_url: str) -> Mapping[str, str]:
    """Store what the endpoint reads; the environment that it needs."""
    key, nonce = secrets.token_bytes(32), secrets.token_bytes(_NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, secrets.token_hex(_DOCUMENT_BYTES // 2).encode(), None)
    with Redis.from_url(redis_url) as server:
        server.set(_CLIENT, secrets.token_hex(_CLIENT_BYTES // 2))
        server.set(_DOCUMENT, nonce + sealed)
    return {URL_VARIABLE: redis_url, KEY_VARIABLE: key.hex()}


def make_app(redis_url: str, key: bytes) -> Starlette:
    """The application, of one endpoint."""
    server = redis.asyncio.from_url(redis_url)
    opener = AESGCM(key)

    async def ready(request: Request) -> JSONResponse:
        # Its type leaves open what `decode_responses` decides.
        client: Any = await server.get(_CLIENT)
        document: Any = await server.get(_DOCUMENT)
        opened = opener.decrypt(document[:_NONCE_BYTES], document[_NONCE_BYTES:], None)
        return JSONResponse({"client": client.decode(), "document": opened.decode()})

    return Starlette(routes=[Route("/", ready)])


def app() -> Starlette:
    """For `uvicorn --factory`."""
    return make_app(os.environ[URL_VARIABLE], bytes.fromhex(os.environ[KEY_VARIABLE]))
