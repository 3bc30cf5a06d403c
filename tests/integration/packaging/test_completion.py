"""Completion in a real bash, at a terminal, with the Tab key."""

import os
import pty
import select
import subprocess
import time

import pytest

from tests.integration.packaging.installed import BASE, LIMIT_SECONDS, WITH_SERVER, Installed

# No start-up file and no prompt: what comes back is the echo of the keys, and the programs' words.
BASH = ["bash", "--noprofile", "--norc", "-i"]
TERMINAL = {"TERM": "dumb", "PS1": "", "HISTFILE": "", "INPUTRC": "/dev/null"}


def typed_in_bash(installed: Installed, keys: str, until: str) -> str:
    """What a terminal shows of the keys, up to the text that is waited for."""
    terminal, its_end = pty.openpty()
    environ = {**installed.environ, **TERMINAL}
    shell = subprocess.Popen(
        BASH,
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        env=environ,
        cwd="/",
        start_new_session=True,
    )
    os.close(its_end)
    try:
        os.write(terminal, b"source <(gateway completion bash); echo re''ady\n")
        _read_until(terminal, "ready")
        os.write(terminal, keys.encode())
        return _read_until(terminal, until)
    finally:
        os.close(terminal)
        shell.kill()
        shell.wait(LIMIT_SECONDS)


def _read_until(terminal: int, text: str) -> str:
    shown = ""
    end = time.monotonic() + LIMIT_SECONDS
    while text not in shown:
        is_readable, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert is_readable, f"{text!r} did not come; shown: {shown!r}"
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


@pytest.mark.parametrize("installed", [BASE, WITH_SERVER], ids=["base", "with-server"])
def test_tab_completes_a_command_and_its_argument(installed: Installed) -> None:
    shown = typed_in_bash(installed, "gateway compl\tba\t | head -n 1\n", "_gateway_completion()")
    assert "gateway completion bash" in shown


def test_tab_completes_an_option_of_a_nested_command() -> None:
    shown = typed_in_bash(WITH_SERVER, "gateway clients ensure --patt\tx --help\n", "Usage:")
    assert "gateway clients ensure --pattern x --help" in shown


def test_tab_offers_no_command_of_the_server_in_the_base_install() -> None:
    shown = typed_in_bash(BASE, "gateway ser\t; echo e''nd\n", "end")
    assert "gateway serve" not in shown
