"""What the monitor of parts tells whoever starts or stops them."""

import asyncio

from structlog.testing import capture_logs

from gateway.http.health import Monitor, Need, Part, PartUnknown


def part(name: str, goes_on: asyncio.Event | None = None) -> Part:
    """A part that is well, once it is looked at."""

    async def probe() -> None:
        if goes_on is not None:
            await goes_on.wait()

    return Part(name, name, Need.ALWAYS, 60.0, probe)


async def test_looked_waits_for_every_part() -> None:
    goes_on = asyncio.Event()
    monitor = Monitor([part("redis"), part("worker", goes_on)], lambda: 0)
    watching = asyncio.create_task(monitor.run())
    await monitor.looked(0.01)
    assert monitor.report()[1]["parts"]["worker"]["state"] == "unknown"
    goes_on.set()
    await monitor.looked(30)
    assert monitor.report()[0]
    watching.cancel()


async def test_part_that_cannot_be_told_of_is_neither_up_nor_down_and_was_looked_at() -> None:
    async def probe() -> None:
        raise PartUnknown("Nobody tells.")

    monitor = Monitor([Part("name servers", "it", Need.NICE, 60.0, probe)], lambda: 0)
    watching = asyncio.create_task(monitor.run())
    async with asyncio.timeout(30):
        await monitor.looked(60)
    is_ready, page = monitor.report()
    assert (is_ready, page["status"]) == (True, "degraded")
    assert page["parts"]["name servers"] == {
        "state": "unknown",
        "sinceMs": 0,
        "detail": "Nobody tells.",
    }
    watching.cancel()


async def test_monitor_goes_on_from_what_the_one_before_it_saw() -> None:
    former = Monitor([part("redis")], lambda: 1)
    watching = [asyncio.create_task(former.run())]
    await former.looked(30)
    with capture_logs() as said:
        monitor = Monitor([part("redis"), part("zone new")], lambda: 2, former)
        assert monitor.report()[1]["parts"]["redis"] == {"state": "unknown", "sinceMs": 2}
        watching.append(asyncio.create_task(monitor.run()))
        await monitor.looked(30)
    assert [line["part"] for line in said] == ["zone new"]
    assert [seen["sinceMs"] for seen in monitor.report()[1]["parts"].values()] == [1, 2]
    for task in watching:
        task.cancel()


async def test_part_that_ends_while_the_process_stops_is_not_down() -> None:
    may_end, was_told = asyncio.Event(), asyncio.Event()
    looks = 0

    async def probe() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            was_told.set()
        if looks > 1:
            await may_end.wait()
            raise RuntimeError("It has ended.")

    monitor = Monitor([Part("worker", "worker", Need.ALWAYS, 0.0, probe)], lambda: 0)
    watching = asyncio.create_task(monitor.run())
    await monitor.looked(30)
    monitor.tell_stopping()
    may_end.set()
    async with asyncio.timeout(30):
        await was_told.wait()
    assert [state for _, state in monitor.states()] == ["up"]
    watching.cancel()


async def test_process_that_stops_is_not_ready_however_well_its_parts_are() -> None:
    monitor = Monitor([part("redis")], lambda: 0)
    watching = asyncio.create_task(monitor.run())
    await monitor.looked(30)
    assert monitor.report()[0]
    monitor.tell_stopping()
    is_ready, page = monitor.report()
    assert (is_ready, page["status"]) == (False, "stopping")
    watching.cancel()
