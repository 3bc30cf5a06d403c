"""Who a process acts as: the system's own names, also for a user that it has no name for."""

import os
import pwd
import socket

from gateway.actors import operator, this_process
from gateway.store.deeds import Role


def test_operator_is_the_user_of_the_process() -> None:
    found = operator()
    assert (found.role, found.remote) == (Role.OPERATOR, socket.gethostname())
    assert found.name.split(",")[0] == pwd.getpwuid(os.getuid()).pw_name


def test_process_is_named_by_machine_and_pid() -> None:
    found = this_process()
    assert (found.role, found.name) == (Role.PROCESS, f"{socket.gethostname()}-{os.getpid()}")
