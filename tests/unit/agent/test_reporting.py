"""What is told of the agent as a whole, also where a disk takes no writes."""

from pathlib import Path

from structlog.testing import capture_logs

from gateway.agent.clocks import HOUR_MS, MINUTE_MS, Clocks
from gateway.agent.config import load_agent_settings
from gateway.agent.memory import Memory
from gateway.agent.reporting import Reporter
from gateway.contract import DnsRecord, Hostname

CONFIG = """
state_dir = "state"
textfile = "agent.prom"
[gateway]
url = "https://gateway.example.test"
token_env = "TOKEN"
[[ownership]]
app_id = "relay"
hostname = "relay.example.test"
record.value = "198.51.100.85"
"""
NOW_MS = 1_795_000_000_000
HOST = Hostname("relay.example.test")
NOTHING = {HOST: Memory()}
PUBLISHED = DnsRecord(type="A", value="198.51.100.85", ttl=300)


def test_metrics_that_cannot_be_written_are_said_hourly_and_when_they_can(tmp_path: Path) -> None:
    config, textfile = tmp_path / "agent.toml", tmp_path / "agent.prom"
    config.write_text(CONFIG)
    settings = load_agent_settings(config, {})
    textfile.mkdir()
    ms = 0
    reporter = Reporter(settings, Clocks(lambda: NOW_MS + ms, lambda: ms))
    with capture_logs() as lines:
        while ms <= HOUR_MS:
            reporter.report(NOTHING)
            ms += MINUTE_MS
        textfile.rmdir()
        reporter.report(NOTHING)
    assert [line["event"] for line in lines] == [
        "metrics not written",
        "metrics not written",
        "metrics can be written again",
    ]
    assert textfile.is_file()


def test_metrics_count_as_missing_until_they_are_written(tmp_path: Path) -> None:
    config, textfile = tmp_path / "agent.toml", tmp_path / "agent.prom"
    config.write_text(CONFIG)
    textfile.mkdir()
    reporter = Reporter(load_agent_settings(config, {}), Clocks(lambda: NOW_MS, lambda: 0))
    assert reporter.fault == f"the metrics were not written in time: {textfile}"
    reporter.report(NOTHING)
    assert reporter.fault == f"cannot write the metrics {textfile}: Is a directory"
    textfile.rmdir()
    reporter.report(NOTHING)
    assert reporter.fault is None


def test_what_is_told_is_what_the_agent_knows_and_not_what_is_written_by_now(
    tmp_path: Path,
) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(CONFIG)
    reporter = Reporter(load_agent_settings(config, {}), Clocks(lambda: NOW_MS, lambda: 0))
    assert reporter.report(NOTHING) == f"{HOST} is not current"
    known = {HOST: Memory(published=PUBLISHED, published_at_ms=NOW_MS, wanted=PUBLISHED)}
    assert reporter.report(known) == f"{HOST} is current"
    written = (tmp_path / "agent.prom").read_text()
    assert f'gateway_agent_record_ok{{hostname="{HOST}"}} 1.0' in written
