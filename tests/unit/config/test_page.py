"""The table `[page]`: on where only this machine reaches the listener, unless it is said."""

import pytest

from gateway.cli.finding import State
from gateway.cli.page_finding import page_finding
from tests.unit.config.conftest import MINIMAL, Faults, Load

BEYOND = '\n[http]\nlisten = "0.0.0.0:8053"\nallow_plain_http = true\n'
PROXIED = '\n[http]\ntrusted_proxies = ["127.0.0.1"]\n'
BOTH = f'{BEYOND}trusted_proxies = ["192.0.2.1"]\n'
ON, OFF = "\n[page]\nenabled = true\n", "\n[page]\nenabled = false\n"


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        ("", True),
        ('\n[http]\nlisten = "[::1]:8053"\n', True),
        (BEYOND, False),
        (PROXIED, False),
        (BOTH, False),
        (BEYOND + ON, True),
        (PROXIED + ON, True),
        (OFF, False),
    ],
)
def test_page_is_on_where_only_this_machine_reaches_it_or_it_is_said(
    load: Load, text: str, is_on: bool
) -> None:
    assert load(MINIMAL + text).page_is_on is is_on


def test_anything_but_a_truth_value_is_refused(faults: Faults) -> None:
    (fault,) = faults(f'{MINIMAL}\n[page]\nenabled = "perhaps"\n')
    assert fault.startswith("page.enabled: ")


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("", State.OK, "is on, at http://127.0.0.1:8053/operator."),
        ('\n[http]\nlisten = "[::1]:53"\n', State.OK, "at http://[::1]:53/operator."),
        (BEYOND + ON, State.WARNING, "Other machines reach it, and no TLS is known"),
        (BOTH + ON, State.OK, "at /operator behind the proxies of http.trusted_proxies."),
        (BEYOND, State.OK, "is off: page.enabled = true turns it on."),
        (OFF, State.OK, "The operator's page is off."),
    ],
)
def test_check_tells_whether_the_page_is_on_and_who_may_hear_it(
    load: Load, text: str, state: State, words: str
) -> None:
    finding = page_finding(load(MINIMAL + text))
    assert (finding.part, finding.state) == ("page", state)
    assert words in finding.finding
    assert bool(finding.remedy) is (state is State.WARNING)
