"""Fixtures: two gateways with the page on one Redis, and browsers at them."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest

from gateway.store.connection import Store
from tests.integration.page.browsing import PlainBrowser
from tests.integration.service.calling import NO_TLS, World
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.redis import RedisProcess


@pytest.fixture(scope="package")
def page_lab() -> Iterator[Lab]:
    with running_lab(LabOptions(gateways=2, log_level="debug")) as lab:
        yield lab


@pytest.fixture(scope="package")
def world(page_lab: Lab) -> World:
    return World(page_lab.config.url, page_lab.config.admin_token)


class Browse(Protocol):
    """Opens a browser at a gateway's base URL; nobody is logged in."""

    def __call__(self, base_url: str, tls: ssl.SSLContext = NO_TLS) -> PlainBrowser: ...


@pytest.fixture
def browse() -> Iterator[Browse]:
    with ExitStack() as stack:

        def open_one(base_url: str, tls: ssl.SSLContext = NO_TLS) -> PlainBrowser:
            browser = PlainBrowser(base_url, tls)
            stack.callback(browser.client.close)
            return browser

        yield open_one


@pytest.fixture
def stranger(page_lab: Lab, browse: Browse) -> PlainBrowser:
    """A browser that is not logged in."""
    return browse(page_lab.gateways[0].base_url)


@pytest.fixture
def browser(page_lab: Lab, stranger: PlainBrowser) -> PlainBrowser:
    """A browser that is logged in."""
    stranger.log_in(page_lab.config.admin_token)
    return stranger


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(redis_server.url)
    yield store
    await store.close()
