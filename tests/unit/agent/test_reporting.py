"""What is told of the agent as a whole: a metrics' file that cannot be written."""

from pathlib import Path

from structlog.testing import capture_logs

from gateway.agent.clocks import HOUR_MS, MINUTE_MS, Clocks
from gateway.agent.config import load_agent_settings
from gateway.agent.reporting import Reporter

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


def test_metrics_that_cannot_be_written_are_said_hourly_and_when_they_can(tmp_path: Path) -> None:
    config, textfile = tmp_path / "agent.toml", tmp_path / "agent.prom"
    config.write_text(CONFIG)
    settings = load_agent_settings(config, {})
    textfile.mkdir()
    ms = 0
    reporter = Reporter(settings, Clocks(lambda: 1_795_000_000_000 + ms, lambda: ms))
    with capture_logs() as lines:
        while ms <= HOUR_MS:
            reporter.report()
            ms += MINUTE_MS
        textfile.rmdir()
        reporter.report()
    assert [line["event"] for line in lines] == [
        "metrics not written",
        "metrics not written",
        "metrics can be written again",
    ]
    assert textfile.is_file()
