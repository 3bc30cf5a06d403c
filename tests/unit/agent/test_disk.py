"""Work in threads of the agent's own: what it answers, and that a hanging one keeps nobody else."""

import asyncio
import socket
import threading

import pytest

from gateway.agent.disk import Disk


async def test_work_answers_what_it_came_to() -> None:
    assert await Disk("test", 1).run(sum, [1, 2]) == 3


async def test_work_raises_what_it_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await Disk("test", 1).run(lambda: 1 / 0)


async def test_work_that_is_given_up_comes_to_its_own_end() -> None:
    disk, may_go_on, ended = Disk("test", 1), threading.Event(), threading.Event()

    def work() -> None:
        may_go_on.wait()
        ended.set()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(disk.run(work), 0.01)
    may_go_on.set()
    await disk.run(int)
    assert ended.is_set()


async def test_disk_that_hangs_leaves_other_threads_to_the_look_up_of_names() -> None:
    disk, may_go_on = Disk("test", 4), threading.Event()
    hanging = [asyncio.create_task(disk.run(may_go_on.wait)) for _ in range(100)]
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    assert await loop.getaddrinfo("127.0.0.1", 1, type=socket.SOCK_STREAM)
    may_go_on.set()
    await asyncio.gather(*hanging)
