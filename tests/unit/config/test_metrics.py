"""The table `[metrics]`: off unless it is told where, and on loopback unless more is said."""

import pytest

from gateway.config import Address
from tests.unit.config.conftest import MINIMAL, Faults, Load


def table(*lines: str) -> str:
    return "\n".join((MINIMAL, "[metrics]", *lines))


def test_nothing_is_shown_unless_an_address_is_given(load: Load) -> None:
    assert load().metrics.listen is None


@pytest.mark.parametrize("listen", ["127.0.0.1:9153", "[::1]:9153", "localhost:9153"])
def test_loopback_is_listened_on_without_a_further_word(load: Load, listen: str) -> None:
    assert load(table(f'listen = "{listen}"')).metrics.listen == Address(
        listen.rpartition(":")[0].strip("[]"), 9153
    )


@pytest.mark.parametrize("listen", ["0.0.0.0:9153", "192.0.2.1:9153", "metrics.example.org:9153"])
def test_address_beyond_loopback_has_to_be_allowed(load: Load, faults: Faults, listen: str) -> None:
    (fault,) = faults(table(f'listen = "{listen}"'))
    assert fault.startswith("metrics.listen: must be a loopback address")
    assert "metrics.allow_beyond_loopback" in fault
    assert listen in fault
    allowed = load(table("allow_beyond_loopback = true", f'listen = "{listen}"'))
    assert allowed.metrics.listen is not None


def test_each_fault_of_the_table_is_told(faults: Faults) -> None:
    told = faults(
        table('listen = "127.0.0.1"', "census_seconds = 0", 'allow_beyond_loopback = "x"')
    )
    assert sorted(fault.partition(":")[0] for fault in told) == [
        "metrics.allow_beyond_loopback",
        "metrics.census_seconds",
        "metrics.listen",
    ]


@pytest.mark.parametrize(
    ("http", "metrics"),
    [("127.0.0.1:9153", "127.0.0.1:9153"), ("[::]:9153", "[::1]:9153")],
)
def test_figures_are_not_shown_where_calls_are_answered(
    faults: Faults, http: str, metrics: str
) -> None:
    of_http = f'[http]\nallow_plain_http = true\nlisten = "{http}"'
    assert faults(table(f'listen = "{metrics}"', of_http)) == [
        f'metrics.listen: must be another address than http.listen, "{http}", not "{metrics}"'
    ]
