"""Log lines: in both forms, an exception's frames are shown and what was in them is not."""

import json
import subprocess
import sys

import pytest

BREAKING = """
import structlog
from gateway.logs import configure_logging

configure_logging("info", "{form}")
log = structlog.get_logger("gateway.test")


def admit(token):
    raise KeyError("client")


try:
    admit("gwc_" + "s3cret" * 8)
except KeyError:
    log.exception("call broke", incident_id="abc")
log.debug("not at this level")
"""


def lines_of(form: str) -> list[str]:
    """What a process of its own logs, since logging is configured once for a whole process."""
    script = BREAKING.format(form=form)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


@pytest.mark.parametrize("form", ["json", "console"])
def test_exception_is_logged_without_the_values_in_its_frames(form: str) -> None:
    text = "\n".join(lines_of(form))
    assert "KeyError" in text
    assert "admit" in text
    assert "s3cret" * 8 not in text
    assert "s3crets3cret" not in text
    assert "not at this level" not in text


def test_json_form_is_one_object_a_line() -> None:
    (line,) = lines_of("json")
    entry = json.loads(line)
    assert (entry["event"], entry["level"], entry["incident_id"]) == ("call broke", "error", "abc")
