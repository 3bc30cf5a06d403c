"""The demo, as a program: what it promises, what it keeps to itself, and how it fails."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.integration.test_lab import processes_in
from tests.lab.process import find_program, wait_until

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "tests.lab.demo")
STORY_LIMIT_SECONDS = 90.0
INTERRUPTED = 128 + signal.SIGINT
STAGES = [
    *("requested", "ordered", "published", "propagated"),
    *("validating", "ready", "finalizing", "issued"),
]
WHO = ("admin", "client")
SECRET_FORMS = re.compile(r"gw[ac]_[A-Za-z0-9]|PRIVATE KEY|secret \"|secret = ")


@dataclass(frozen=True)
class Kept:
    """What was there while a demo kept its lab, and after ^C had ended it."""

    output: str
    secrets: frozenset[str]
    logs: dict[str, str]
    page: str
    pasted: str
    exit_code: int
    left_over: list[Path]
    left_running: list[int]


def environ(temporary: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary), **more}


@contextmanager
def demo_until(
    last_words: str, temporary: Path, output_file: Path, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a demo until it has said something; it is dead at the end of the block."""
    with output_file.open("wb") as output:
        child = subprocess.Popen(
            [*COMMAND, *options],
            cwd=ROOT,
            env=environ(temporary),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(
            lambda: last_words in output_file.read_text() or child.poll() is not None,
            f"the demo says {last_words}",
            STORY_LIMIT_SECONDS,
        )
        yield child
    finally:
        child.kill()
        child.wait()


def secrets_of(lab_folder: Path) -> frozenset[str]:
    config = tomllib.loads((lab_folder / "gateway" / "gateway.toml").read_text())
    found = {zone["tsig"]["secret"] for zone in config["zones"]}
    found.add((lab_folder / "gateway" / "keyring").read_text().split()[-1])
    found |= {(lab_folder / "demo" / f"{who}-token").read_text().strip() for who in WHO}
    found |= set(re.findall(r'secret "(.+?)"', (lab_folder / "demo" / "hand.key").read_text()))
    return frozenset(found)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """One demo with `--keep`, from its start to ^C, with its lines pasted in between."""
    find_program("curl", "curl")
    output_file = tmp_path_factory.mktemp("output") / "demo"
    temporary = tmp_path_factory.mktemp("demo")
    last_words = "Configuration and the gateway's log"
    with demo_until(last_words, temporary, output_file, "--keep") as child:
        (lab_folder,) = temporary.glob("gateway-lab-*")
        secrets = secrets_of(lab_folder)
        address = re.search(r"^ *(http://\S+/operator)$", output_file.read_text(), re.MULTILINE)
        assert address is not None
        page = httpx.get(address[1], follow_redirects=True, trust_env=False).text
        to_paste = output_file.read_text().partition("into a shell:\n\n")[2].partition("\n\n")[0]
        shell = subprocess.run(
            ["bash"], input=to_paste, capture_output=True, text=True, check=False
        )
        logs = {file.name: file.read_text() for file in lab_folder.rglob("*.log")}
        child.send_signal(signal.SIGINT)
        return Kept(
            output=output_file.read_text(),
            secrets=secrets,
            logs=logs,
            page=page,
            pasted=shell.stdout + shell.stderr,
            exit_code=child.wait(),
            left_over=list(temporary.iterdir()),
            left_running=processes_in(temporary),
        )


def test_kept_lab_tells_the_address_of_its_page(kept: Kept) -> None:
    assert "Admin token" in kept.page


def test_story_holds_from_beginning_to_end(tmp_path: Path) -> None:
    ended = subprocess.run(
        COMMAND, cwd=ROOT, env=environ(tmp_path), capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"^All \d+ checks held\. .* in all", ended.stdout, re.MULTILINE)
    assert not SECRET_FORMS.search(ended.stdout)
    assert list(tmp_path.iterdir()) == []
    assert processes_in(tmp_path) == []


def test_stages_are_shown_in_order(kept: Kept) -> None:
    assert re.findall(r"^ +\d+ ms  (\w+)", kept.output, re.MULTILINE) == STAGES


def test_output_has_no_secret_also_when_kept(kept: Kept) -> None:
    assert len(kept.secrets) == len({"tsig", "keyring", "hand", *WHO})
    assert [secret for secret in kept.secrets if secret in kept.output] == []
    assert not SECRET_FORMS.search(kept.output)


def test_no_log_of_the_lab_has_a_secret_after_the_story(kept: Kept) -> None:
    assert "gateway.log" in kept.logs
    leaks = [
        name
        for name, text in kept.logs.items()
        if SECRET_FORMS.search(text) or any(secret in text for secret in kept.secrets)
    ]
    assert leaks == []


def test_lines_to_try_work_when_pasted(kept: Kept) -> None:
    answers = [json.loads(line) for line in kept.pasted.splitlines() if line.startswith("{")]
    assert [answer for answer in answers if "error" in answer] == []
    *calls, health = answers
    told = [call["response"].get("status") or call["response"]["context"]["role"] for call in calls]
    assert told == [
        *("gatewayClient", "admin", "managed-created", "pending", "released", "managed-deleted")
    ]
    assert health["status"] == "ready"
    assert kept.pasted.count("\tA\t198.51.100.7") == len({"primary", "secondary"})


def test_kept_lab_leaves_nothing_after_interrupt(kept: Kept) -> None:
    assert (kept.exit_code, kept.left_over, kept.left_running) == (0, [], [])


def test_interrupted_story_is_no_success_and_leaves_nothing(tmp_path: Path) -> None:
    temporary = tmp_path / "demo"
    temporary.mkdir()
    with demo_until("A client is provisioned", temporary, tmp_path / "output") as child:
        child.send_signal(signal.SIGINT)
        assert child.wait() == INTERRUPTED
        assert (list(temporary.iterdir()), processes_in(temporary)) == ([], [])


def test_story_ends_with_what_was_expected_when_the_authority_is_away(tmp_path: Path) -> None:
    nowhere = environ(tmp_path, GATEWAY_ACME__0__DIRECTORY="https://127.0.0.1:9/dir")
    ended = subprocess.run(
        COMMAND, cwd=ROOT, env=nowhere, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "checks held" not in ended.stdout
    assert re.search(
        r"FAILED in part 6: the certificate is there\n"
        r"  expected  ready\n"
        r"  seen      refused: authority-unavailable\n",
        ended.stderr,
    )
    assert not SECRET_FORMS.search(ended.stdout + ended.stderr)


@pytest.mark.parametrize(
    ("options", "more", "has_colours"),
    [((), {}, True), (("--plain",), {}, False), ((), {"NO_COLOR": "1"}, False)],
    ids=["terminal", "plain", "no-color"],
)
def test_colours_are_for_terminals_that_want_them(
    tmp_path: Path, options: tuple[str, ...], more: dict[str, str], *, has_colours: bool
) -> None:
    # Without programs on the PATH it says so and ends at once: two lines are enough to see.
    chosen = {name: value for name, value in environ(tmp_path).items() if name != "NO_COLOR"}
    chosen |= {"TERM": "xterm", "PATH": str(tmp_path), **more}
    ours, its = pty.openpty()
    ended = subprocess.run(
        [*COMMAND, *options], cwd=ROOT, env=chosen, stdout=its, stderr=its, check=False
    )
    os.close(its)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert ended.returncode == 1
    assert "is missing: install the Debian package" in said
    assert ("\x1b[" in said) is has_colours
