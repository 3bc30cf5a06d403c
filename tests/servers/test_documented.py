"""`docs/dns-servers.md` shows what the lab runs, and in its table what the tests here see."""

from pathlib import Path

import pytest

from tests.lab import knot, powerdns
from tests.lab.bind import Tsig
from tests.servers.table import COLUMNS, PAGE, documented

KEY = Tsig("gateway", "hmac-sha256", "<secret>")

KNOT = knot.DOCUMENTED.format(
    listen="192.0.2.53@53",
    key=KEY,
    secondary="192.0.2.54@53",
    secondary_host="192.0.2.54",
    update_types="A, AAAA, TXT",
    storage="/var/lib/knot",
    acls="gateway, secondary",
    further="",
    zone="example.com",
)
POWERDNS = powerdns.DOCUMENTED_CONFIG.format(
    database="/var/lib/powerdns/pdns.sqlite3",
    address="192.0.2.53",
    port=53,
    clients="192.0.2.10/32",
)
POWERDNS_COMMANDS = powerdns.DOCUMENTED_KEY.format(key=KEY) + powerdns.DOCUMENTED_ZONE.format(
    zone="example.com",
    zone_file="example.com.zone",
    key=KEY,
    keys="gateway",
    secondary="192.0.2.54:53",
)


@pytest.mark.parametrize(
    "block", [KNOT, POWERDNS, POWERDNS_COMMANDS], ids=["knot.conf", "pdns.conf", "pdnsutil"]
)
def test_block_of_the_page_is_what_the_lab_runs(block: str) -> None:
    assert f"```\n{block}```\n" in PAGE.read_text()


@pytest.mark.parametrize(
    "line", [knot.SIGNED, powerdns.SIGNED_CONFIG, powerdns.SIGNED_ZONE.format(zone="example.com")]
)
def test_line_that_signs_a_zone_is_on_the_page(line: str) -> None:
    assert f"`{line.strip()}`" in PAGE.read_text()


def test_each_behaviour_of_the_page_is_told_by_a_test() -> None:
    sources = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    assert [each for each in documented() if f'"{each}"' not in sources] == []


def test_no_cell_of_the_table_is_empty() -> None:
    for outcomes in documented().values():
        assert set(outcomes) == set(COLUMNS)
        assert all(outcomes.values())
