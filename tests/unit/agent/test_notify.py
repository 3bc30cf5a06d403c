"""What the environment says of systemd. The datagrams: tests/integration/agent_parts."""

import os

import pytest

from gateway.notify import Notifier


def test_watchdog_is_fed_three_times_within_its_limit() -> None:
    assert Notifier({"WATCHDOG_USEC": "60000000"}).beat_seconds == 20


def test_watchdog_that_is_meant_for_this_process_is_fed() -> None:
    environ = {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    assert Notifier(environ).beat_seconds == 1


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid() + 1)},
    ],
)
def test_watchdog_of_nobody_or_of_another_is_not_fed(environ: dict[str, str]) -> None:
    assert Notifier(environ).beat_seconds is None


@pytest.mark.parametrize("name", ["", "relative", "vsock:1:2", "/nowhere/socket", "@nobody"])
def test_nothing_happens_when_nobody_listens(name: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000"})
    notifier.ready("up")
    notifier.alive()
    notifier.stopping()
