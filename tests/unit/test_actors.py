"""Who a process acts as: the system's own names, also for a user that it has no name for."""

import os
import pwd
import socket

import pytest

from gateway.actors import operator, this_process
from gateway.store.deeds import Role


def test_operator_is_the_user_of_the_process() -> None:
    found = operator()
    assert (found.role, found.remote) == (Role.OPERATOR, socket.gethostname())
    assert found.name.split(",")[0] == pwd.getpwuid(os.getuid()).pw_name


def test_user_without_a_name_is_known_by_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    nobodys = next(uid for uid in range(60_000, 2**31) if not _has_name(uid))
    monkeypatch.setattr(os, "getuid", lambda: nobodys)
    assert operator().name.split(",")[0] == f"uid {nobodys}"


def _has_name(user_id: int) -> bool:
    try:
        pwd.getpwuid(user_id)
    except KeyError:
        return False
    return True


def test_process_is_named_by_machine_and_pid() -> None:
    found = this_process()
    assert (found.role, found.name) == (Role.PROCESS, f"{socket.gethostname()}-{os.getpid()}")
