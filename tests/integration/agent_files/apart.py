"""Runs one function in a process of its own, and answers what it answered.

Responsible for: what must not happen in the tests' own process (mounts, other users, being killed),
done in a fork that ends with it. Must not: know what the function does.
Called by: the tests of this package and the kill walk over the agent's files.
"""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lab import forks
from tests.lab.process import LabFault

NOBODY = 65534
"""A user, and a group, that nothing belongs to."""

_LIMIT_SECONDS = 60.0


class Apart:
    """A process that runs `function` of a module with these arguments; it has begun.

    What the function answers, and the arguments, are anything that JSON and pickle can hold.
    """

    def __init__(self, folder: Path, function: Callable[..., Any], *arguments: object) -> None:
        self._answer = folder / "answer.json"
        self._log = folder / "output.log"
        self._fork = forks.Fork(_run, folder, function, arguments)
        self._fork.start()

    @property
    def pid(self) -> int:
        return self._fork.pid

    def kill(self) -> None:
        """End it at once. May be repeated."""
        self._fork.kill()

    def ended(self) -> int:
        """Wait for its end: its exit code, -N when signal N ended it."""
        return self._fork.wait(_LIMIT_SECONDS)

    def answer(self) -> Any:
        """Wait for its end, which must be a good one, and tell what the function answered."""
        code = self.ended()
        assert code == 0, f"it ended with {code}: {self._log.read_text()}"
        return json.loads(self._answer.read_text())


def become_nobody() -> None:
    """Give up every right of root; only for a process that ends afterwards.

    Raises: LabFault where this is not root, and so cannot be another user.
    """
    if os.geteuid() != 0:
        raise LabFault("only root can become another user: run this test as root")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def _run(folder: Path, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    forks.settle((folder / "output.log",) * 2, dict(os.environ), str(folder))
    answered = folder / "answer.json"
    with answered.open("w") as file:
        try:
            answer = function(*arguments)
        except BaseException:  # noqa: BLE001 (it is for the log, and the test says so)
            traceback.print_exc()
            os._exit(1)
        json.dump(answer, file)
