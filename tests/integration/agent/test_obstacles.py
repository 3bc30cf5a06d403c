"""What stands in the agent's way: `check` names it where `--once` fails of it, and only there."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.agent.machine import Machine, Ran
from tests.lab.certificates import LabAuthority
from tests.lab.liar import Liar

authority = LabAuthority()


def _certificates(machine: Machine) -> Path:
    return machine.state / "certificates"


def _memory(machine: Machine) -> Path:
    return machine.memory_file.with_name(f".new-{machine.memory_file.name}")


def _textfile(machine: Machine) -> Path:
    return machine.folder / "agent.prom"


PLACES: dict[str, Callable[[Machine], Path]] = {
    "lock": lambda machine: machine.state / "agent.lock",
    "lock-of-certificates": lambda machine: _certificates(machine) / "agent.lock",
    "live": lambda machine: _certificates(machine) / "live",
    "begun-live": lambda machine: _certificates(machine) / ".new-live",
    "archive": lambda machine: machine.archive,
    "link": lambda machine: machine.live,
    "begun-link": lambda machine: machine.live.with_name(f".new-{machine.hostname}"),
    "memories": lambda machine: machine.state / "state",
    "memory": lambda machine: machine.memory_file,
    "begun-memory": _memory,
    "textfile": _textfile,
    "begun-textfile": lambda machine: _textfile(machine).with_name("agent.prom.new"),
}


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    elsewhere = path.parents[1] / "elsewhere"
    elsewhere.mkdir()
    path.symlink_to(elsewhere)


@pytest.fixture
def served(misled: Machine, liar: Liar) -> Machine:
    """A machine that is asked for nothing but what the server has."""
    liar.ready_with(authority.as_certificate(misled.hostname))
    misled.configure(certificate={}, textfile=str(_textfile(misled)))
    return misled


def _failures(ran: Ran) -> list[str]:
    """What the check finds wrong with this machine. The server that lies is no gateway."""
    return [line for line in ran.said if line[0] == "✗" and not line.startswith("✗ gateway")]


@pytest.mark.parametrize(
    ("place", "put"),
    [
        *((place, Path.mkdir) for place in PLACES if place not in ("live", "archive", "memories")),
        *((place, Path.touch) for place in ("live", "begun-live", "archive", "memories", "link")),
        *((place, _fifo) for place in ("lock", "lock-of-certificates", "begun-link")),
        *((place, _link) for place in ("lock", "live", "link")),
    ],
)
def test_what_is_in_the_way_is_told_before_the_agent_fails_of_it(
    served: Machine, place: str, put: Callable[[Path], None]
) -> None:
    path = PLACES[place](served)
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path)
    if place == "begun-live" and put is Path.mkdir:
        # A folder of the agent's own, as a run leaves it that is killed there.
        assert _failures(served.run("check")) == []
        assert served.once().code == 0
        return
    told = _failures(served.run("check"))
    assert [line for line in told if str(path) in line]
    assert all(" → " in line for line in told)
    ran = served.once()
    assert ran.code == 1
    assert str(path) in ran.complaint
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    assert _failures(served.run("check")) == []
    assert served.once().code == 0


def test_file_in_the_place_of_the_live_version_is_a_warning_as_the_agent_mends_it(
    served: Machine,
) -> None:
    served.once()
    version = served.live.resolve()
    version.rename(version.with_name("aside"))
    version.touch()
    ran = served.run("check")
    assert _failures(ran) == []
    assert [line for line in ran.said if line[0] == "!" and str(version) in line]
    assert served.once().code == 0
    assert served.served() != ("", "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"echo reloaded\n", "it begins with neither #! nor an ELF header"),
        (b"", "it begins with neither #! nor an ELF header"),
        (b"#!/nonexistent/sh\n", 'cannot run "/nonexistent/sh", which its first line names'),
        (b"#!/bin/sh\r\n", 'cannot run "/bin/sh\\u{d}", which its first line names'),
    ],
    ids=["text", "empty", "interpreter", "windows"],
)
def test_hook_that_the_kernel_does_not_start_is_told(
    served: Machine, content: bytes, said: str
) -> None:
    hook = served.folder / "hook"
    hook.write_bytes(content)
    hook.chmod(0o755)
    served.configure(certificate={"deploy_hook": [str(hook)]})
    (told,) = _failures(served.run("check"))
    assert f"The deploy hook's program {hook} cannot be run: " in told
    assert said in told
    assert served.once().code == 1
    hook.write_text("#! /bin/sh\n")
    assert _failures(served.run("check")) == []
    assert served.once().code == 0
