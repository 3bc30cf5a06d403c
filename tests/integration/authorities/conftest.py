"""Fixtures: further Pebbles beside the session's own, and a gateway on one that has ARI."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.integration.authorities.duo import Duo, running_duo
from tests.integration.authorities.renewing import RenewingCa, is_found_by_pebble, renewing_ca
from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Mood
from tests.lab.acme_proxy import Rule
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble


@pytest.fixture(scope="package")
def second_pebble(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair
) -> Iterator[PebbleProcess]:
    server = start_pebble(tmp_path_factory.mktemp("second-pebble"), bind.primary)
    yield server
    server.stop()


@pytest.fixture
def mortal_pebble(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair
) -> Iterator[PebbleProcess]:
    """One that a test may stop."""
    server = start_pebble(tmp_path_factory.mktemp("mortal-pebble"), bind.primary)
    yield server
    server.stop()


@dataclass(frozen=True)
class AriLab:
    """A gateway whose only CA says when to renew."""

    ca: RenewingCa
    duo: Duo
    rules: dict[str, Rule] = field(default_factory=dict)

    def issued(
        self, before: Callable[[Ownership], object] = lambda _: None
    ) -> tuple[Ownership, dict[str, Any]]:
        """A new ownership with its certificate as it is stored, when its CA has been asked.

        `before` is called with the ownership when nothing is issued yet.
        """
        while True:
            mine = self.duo.world.ownership()
            before(mine)
            mine.certificate()
            self.duo.wait_until_at_rest(mine.hostname)
            held = self.duo.certificate(mine.hostname)
            if is_found_by_pebble(held):
                return mine, held

    def meeting(self, mood: Mood, times: int = 1) -> Callable[[Ownership], None]:
        """For `issued`: put a mood in charge of the first questions when to renew."""

        def before(mine: Ownership) -> None:
            self.rules[mine.hostname] = self.ca.proxy.on(
                Operation.RENEWAL_INFO, mood, hostname=mine.hostname, times=times
            )

        return before

    def end_moods(self, mine: Ownership) -> None:
        """End what `meeting` began, which must have met a question."""
        assert self.rules[mine.hostname].hits
        self.rules[mine.hostname].end()

    def held_up(self, mine: Ownership) -> list[str]:
        """Why its issuances have waited or failed so far, by the gateway's own log."""
        lines = self.duo.gateway.process.log_file.read_text().splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        return [
            each["reason"]
            for each in entries
            if each["event"] == "issuance held up" and each["hostname"] == mine.hostname
        ]


@pytest.fixture(scope="package")
def ari(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[AriLab]:
    """One for all tests that move the windows of their own hostnames' certificates only."""
    folder = tmp_path_factory.mktemp("ari")
    log = {"GATEWAY_LOG__FORMAT": "json"}
    with (
        renewing_ca(folder / "ca", bind) as ca,
        running_duo(folder, bind, ca.proxy, environ=log) as duo,
    ):
        yield AriLab(ca, duo)
