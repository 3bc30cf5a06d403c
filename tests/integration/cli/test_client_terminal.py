"""`gateway client` at a terminal: the prompt, the progress, ^C, and what others can see of it."""

import json
import re
from pathlib import Path

import pytest

from tests.integration.cli.clientside import Relay, issuing_at_rest, new_relay
from tests.integration.cli.terminal import Terminal
from tests.integration.service.calling import World
from tests.lab.lab import Lab

PROMPT = "Token (not shown): "
CLEARED = "\r\x1b[K"
COLUMNS = 80
WAITED = re.compile(r"\d:\d\d waited")


@pytest.fixture(scope="module")
def world(lab: Lab) -> World:
    return World(lab.config.url, lab.config.admin_token)


@pytest.fixture
def relay(world: World, tmp_path: Path) -> Relay:
    return new_relay(world, tmp_path)


@pytest.fixture
def unset(relay: Relay) -> dict[str, str]:
    """The relay's variables without its token."""
    return relay.environ | {"GATEWAY_TOKEN_FILE": ""}


def test_token_that_is_typed_at_the_prompt_is_used_and_not_shown(
    relay: Relay, unset: dict[str, str]
) -> None:
    with Terminal(["client", "context", "--json"], unset) as terminal:
        terminal.read_until(lambda screen: PROMPT in screen)
        terminal.type(f"{relay.token}\n")
        code, output = terminal.ended()
    assert code == 0
    assert json.loads(output)["context"]["hostnamePatterns"] == [relay.hostname]
    assert relay.token not in terminal.screen + output


def test_wrong_token_at_the_prompt_is_not_repeated(unset: dict[str, str]) -> None:
    with Terminal(["client", "context"], unset) as terminal:
        terminal.read_until(lambda screen: PROMPT in screen)
        terminal.type("what I typed instead\n")
        code, output = terminal.ended()
    assert (code, output) == (2, "")
    assert "must hold one token and nothing else" in terminal.screen
    assert "what I typed" not in terminal.screen


def test_end_of_input_at_the_prompt_is_no_token(unset: dict[str, str]) -> None:
    with Terminal(["client", "context"], unset) as terminal:
        terminal.read_until(lambda screen: PROMPT in screen)
        terminal.type("\x04")
        code, output = terminal.ended()
    assert (code, output) == (2, "")
    assert "The prompt holds no token" in terminal.screen


def test_interrupt_at_the_prompt_ends_with_130(unset: dict[str, str]) -> None:
    with Terminal(["client", "context"], unset) as terminal:
        terminal.read_until(lambda screen: PROMPT in screen)
        terminal.type("\x03")
        code, output = terminal.ended()
    assert (code, output) == (130, "")
    assert terminal.screen.endswith("\r\nInterrupted.\r\n")


def test_gateway_that_is_not_there_is_told_at_once_and_interrupt_ends_with_130(
    relay: Relay, nobody: str
) -> None:
    with Terminal(["client", "context", "--url", nobody], relay.environ) as terminal:
        terminal.read_until(lambda screen: "Trying again until 30 s are over" in screen)
        terminal.type("\x03")
        code, output = terminal.ended()
    assert (code, output) == (130, "")
    assert f"The gateway at {nobody}" in terminal.screen
    assert "may be done all the same" in terminal.screen


def test_wait_shows_why_a_gateway_is_not_reached_and_claims_no_issuance_after_interrupt(
    relay: Relay, nobody: str
) -> None:
    with Terminal([*wait_for(relay), "--url", nobody], relay.environ, 200) as terminal:
        terminal.read_until(lambda screen: "trying again: The gateway at" in screen)
        terminal.type("\x03")
        code, _ = terminal.ended()
    assert code == 130
    assert "no issuance was seen to be under way" in terminal.screen
    assert "goes on by itself" not in terminal.screen


def test_token_file_that_everybody_can_read_is_told_to_a_person(relay: Relay) -> None:
    relay.token_file.chmod(0o644)
    with Terminal(["client", "context"], relay.environ) as terminal:
        code, _ = terminal.ended()
    assert code == 0
    assert f"The token file {relay.token_file} may be read by every user" in terminal.screen
    assert relay.run("context").stderr == ""


def test_wait_shows_a_line_that_moves_and_is_gone_at_the_end(relay: Relay, lab: Lab) -> None:
    with issuing_at_rest(lab) as resume, Terminal(wait_for(relay), relay.environ) as terminal:
        terminal.read_until(lambda screen: "left: asking" in screen)
        terminal.read_until(lambda screen: "s: issuance under way" in screen)
        terminal.read_until(lambda screen: len(set(WAITED.findall(screen))) > 1)
        assert relay.token not in terminal.command_line
        resume()
        code, output = terminal.ended()
    assert code == 0
    assert output.startswith("status       ready\n")
    assert terminal.screen.endswith(CLEARED)
    assert "\n" not in terminal.screen
    assert max(map(len, terminal.screen.split(CLEARED))) < COLUMNS
    assert "PRIVATE KEY" not in terminal.screen + output


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_wait_shows_no_progress_when_it_is_told_so(relay: Relay, option: str) -> None:
    with Terminal([*wait_for(relay), option], relay.environ) as terminal:
        code, _ = terminal.ended()
    assert code == 0
    assert terminal.screen == ""


def test_wait_writes_plain_lines_to_a_terminal_that_cannot_clear_one(
    relay: Relay, lab: Lab
) -> None:
    dumb = relay.environ | {"TERM": "dumb"}
    with issuing_at_rest(lab) as resume, Terminal(wait_for(relay), dumb) as terminal:
        terminal.read_until(lambda screen: "issuance under way; " in screen)
        resume()
        code, _ = terminal.ended()
    assert code == 0
    assert "\x1b" not in terminal.screen


def test_wait_draws_in_ascii_where_nothing_else_can_be_shown(relay: Relay, lab: Lab) -> None:
    ascii_only = relay.environ | {"PYTHONIOENCODING": "ascii"}
    with issuing_at_rest(lab), Terminal(wait_for(relay), ascii_only) as terminal:
        terminal.read_until(lambda screen: "issuance under way" in screen)
    assert terminal.screen.isascii()


def test_interrupt_ends_the_waiting_and_not_the_issuance(relay: Relay, lab: Lab) -> None:
    with issuing_at_rest(lab), Terminal(wait_for(relay), relay.environ) as terminal:
        terminal.read_until(lambda screen: "issuance under way" in screen)
        terminal.type("\x03")
        code, output = terminal.ended()
    assert (code, output) == (130, "")
    assert "the gateway goes on by itself" in terminal.screen
    assert relay.ownership.certificate()["hostname"] == relay.hostname


def wait_for(relay: Relay) -> list[str]:
    return ["client", "certificate", "wait", relay.hostname]
