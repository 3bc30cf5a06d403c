"""`gateway` with standard files that are closed, full, gone, or of another encoding.

Processes of their own, started by a shell: what is closed here is closed before Python begins.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.clientside import LIMIT_SECONDS, PATH
from tests.lab.certificates import LabAuthority
from tests.lab.liar import Liar, failure, ready_with, response

GATEWAY = str(Path(sys.executable).with_name("gateway"))
HOSTNAME = "relay.example.test"
TOKEN = "gwc_00aa_notasecretofanybody"
RELEASED = response({"status": "released"})
PENDING = response({"status": "pending", "retryAfterMs": 1})
RELEASE = ("client", "certificate", "release", HOSTNAME)
WAIT = ("client", "certificate", "wait", HOSTNAME)
ALL_CLOSED = "<&- >&- 2>&-"
UNWRITTEN = (
    "The output cannot be written: No space left on device; what was asked for may be done all the"
    " same.\n"
)


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar() as server:
        yield server


@pytest.fixture
def environ(liar: Liar) -> dict[str, str]:
    return {
        "PATH": PATH,
        "LC_ALL": "C.UTF-8",
        "GATEWAY_URL": liar.url,
        "GATEWAY_TOKEN": TOKEN,
        "GATEWAY_APP_ID": "relay",
    }


def run(
    redirection: str, environ: dict[str, str], *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" "$@" {redirection}', GATEWAY, *map(str, arguments)],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )


def write_agent_config(folder: Path, url: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "token").touch(0o600)
    (folder / "token").write_text(TOKEN)
    config = folder / "agent.toml"
    config.write_text(
        f"""state_dir = "{folder}/state"
[gateway]
url = "{url}"
token_file = "{folder}/token"
[[ownership]]
app_id = "relay"
hostname = "{HOSTNAME}"
[ownership.record]
value = "198.51.100.85"
""",
        encoding="utf-8",
    )
    return config


def test_command_that_is_done_needs_no_standard_files(liar: Liar, environ: dict[str, str]) -> None:
    liar.answers(RELEASED)
    assert run(ALL_CLOSED, environ, *RELEASE).returncode == 0


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ALL_CLOSED])
def test_command_that_fails_ends_with_its_own_code_where_nobody_can_be_told(
    liar: Liar, environ: dict[str, str], redirection: str
) -> None:
    liar.answers(failure("overloaded", retryAfterMs=3_600_000))
    assert run(redirection, environ, *RELEASE).returncode == 3


def test_closed_standard_input_holds_no_token(environ: dict[str, str]) -> None:
    done = run("<&-", environ, *RELEASE, "--token-file", "-")
    assert (done.returncode, done.stderr) == (2, "Standard input holds no token: it is empty.\n")


def test_wait_needs_no_standard_error(liar: Liar, environ: dict[str, str]) -> None:
    liar.answers(PENDING, ready_with(LabAuthority().as_certificate(HOSTNAME)))
    done = run("2>&-", environ, *WAIT)
    assert done.returncode == 0
    assert done.stdout.startswith("status       ready\n")


def test_agent_needs_no_standard_error(liar: Liar, environ: dict[str, str], tmp_path: Path) -> None:
    liar.answers(failure("overloaded", retryAfterMs=3_600_000))
    config = write_agent_config(tmp_path / "agent", liar.url)
    done = run("2>&-", environ, "agent", "--config", config, "--once", "--timeout", "5")
    assert done.returncode == 3


@pytest.mark.parametrize("arguments", [RELEASE, (*RELEASE, "--json"), ("--help",)])
def test_output_that_cannot_be_written_is_told(
    liar: Liar, environ: dict[str, str], arguments: tuple[str, ...]
) -> None:
    liar.answers(RELEASED)
    done = run(">/dev/full", environ, *arguments)
    assert (done.returncode, done.stderr) == (1, UNWRITTEN)


def test_agent_tells_of_an_output_that_cannot_be_written(
    liar: Liar, environ: dict[str, str], tmp_path: Path
) -> None:
    synced: dict[str, object] = {
        "status": "managed-created",
        "hostname": HOSTNAME,
        "record": {"type": "A", "value": "198.51.100.85", "ttl": 300},
        "conflictingRecords": [],
        "retryAfterMs": None,
        "message": "Published.",
    }
    liar.answers(response(synced))
    config = write_agent_config(tmp_path / "agent", liar.url)
    done = run(">/dev/full", environ, "agent", "--config", config, "--once", "--timeout", "20")
    assert (done.returncode, done.stderr) == (1, UNWRITTEN)


def test_reader_of_progress_that_goes_away_does_not_end_the_waiting(
    liar: Liar, environ: dict[str, str]
) -> None:
    liar.answers(PENDING)
    with subprocess.Popen(
        [GATEWAY, *WAIT], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stderr is not None
        assert "issuance under way" in waiting.stderr.readline()
        waiting.stderr.close()
        # A change, of which it has to tell.
        limited = {
            "status": "refused",
            "reason": "rate-limited",
            "message": "No.",
            "retryAfterMs": 1,
        }
        ready = ready_with(LabAuthority().as_certificate(HOSTNAME))
        liar.answers(response(limited), response(limited), ready)
        assert waiting.stdout is not None
        output = waiting.stdout.read()
    assert output.startswith("status       ready\n")
    assert waiting.returncode == 0


def test_character_that_the_output_does_not_have_is_escaped(
    liar: Liar, environ: dict[str, str]
) -> None:
    withdrawn: dict[str, object] = {
        "status": "managed-deleted",
        "hostname": HOSTNAME,
        "record": None,
        "conflictingRecords": [],
        "retryAfterMs": None,
        "message": "Gone \u2192 away.",
    }
    liar.answers(response(withdrawn))
    latin = environ | {"PYTHONIOENCODING": "iso-8859-1"}
    done = run("", latin, "client", "record", "delete", HOSTNAME)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"done  {HOSTNAME}: Gone \\u2192 away.\n"


def test_file_that_the_locale_cannot_name_is_told(
    liar: Liar, environ: dict[str, str], tmp_path: Path
) -> None:
    config = write_agent_config(tmp_path / "\u00fc", liar.url)
    plain = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run("", environ | plain, "agent", "status", "--config", config)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run it with a UTF-8 one, such as LC_ALL=C.UTF-8" in done.stderr
