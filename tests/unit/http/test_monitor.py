"""What the monitor of parts tells whoever starts or stops them."""

import asyncio

from gateway.http.health import Monitor, Need, Part


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


async def test_process_that_stops_is_not_ready_however_well_its_parts_are() -> None:
    monitor = Monitor([part("redis")], lambda: 0)
    watching = asyncio.create_task(monitor.run())
    await monitor.looked(30)
    assert monitor.report()[0]
    monitor.tell_stopping()
    is_ready, page = monitor.report()
    assert (is_ready, page["status"]) == (False, "stopping")
    watching.cancel()
