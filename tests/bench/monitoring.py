"""What a Redis was asked, by its own MONITOR: how much, and how many slots each script touched.

Responsible for one thread for each node, which ends with the block. What a script does inside Redis
is not counted again. Called by `cluster`.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redis.crc import key_slot

from tests.lab.ports import LOOPBACK
from tests.lab.process import LabFault

_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_IN_A_SCRIPT = " lua]"

_SCRIPTS = frozenset({"EVALSHA", "EVAL", "EVALSHA_RO", "EVAL_RO", "FCALL"})
_NOT_CALLS = frozenset(
    {"PING", "HELLO", "CLIENT", "CLUSTER", "INFO", "MONITOR", "COMMAND", "SCRIPT", "CONFIG", "TIME"}
)


@dataclass
class Asked:
    """Of one node: commands that callers' work is made of, scripts among them."""

    commands: int = 0
    scripts: int = 0
    most_slots: int = 0

    def note(self, words: Sequence[str]) -> None:
        """Count one command; a script's keys come after their number."""
        name = words[0].upper()
        if name in _NOT_CALLS:
            return
        self.commands += 1
        if name not in _SCRIPTS:
            return
        self.scripts += 1
        keys = words[3 : 3 + int(words[2])]
        slots = {key_slot(key.encode()) for key in keys}
        self.most_slots = max(self.most_slots, len(slots))


@contextlib.contextmanager
def monitored(ports: Sequence[int]) -> Iterator[list[Asked]]:
    """Count what the nodes at these ports are asked while the block runs."""
    with contextlib.ExitStack() as stack:
        asked = [Asked() for _ in ports]
        for port, one in zip(ports, asked, strict=True):
            stack.enter_context(_listening(port, one))
        yield asked


@contextlib.contextmanager
def _listening(port: int, asked: Asked) -> Iterator[None]:
    with socket.create_connection((LOOPBACK, port)) as connection:
        connection.sendall(b"MONITOR\r\n")
        lines = connection.makefile(encoding="utf-8", errors="replace", newline="\r\n")
        if lines.readline().strip() != "+OK":
            raise LabFault("a node of the Cluster does not tell what it is asked")

        is_over = threading.Event()

        def listen() -> None:
            try:
                for line in lines:
                    if _IN_A_SCRIPT not in line.partition('"')[0]:
                        asked.note(_WORD.findall(line))
            except ConnectionResetError:
                # What the node still sends after the shutdown meets a closed door.
                if not is_over.is_set():
                    raise

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            connection.shutdown(socket.SHUT_RDWR)
            thread.join()
