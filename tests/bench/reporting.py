"""Turns reports into the table for people and the line for programs. Called by `__main__`."""

import datetime
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.document import SPENT_HEAD, figure, spent_rows

MEBI = 1 << 20


def machine(loads: Sequence[float]) -> dict[str, Any]:
    """What the figures were measured on, and how busy it was meanwhile."""
    return {
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "cpus": os.cpu_count(),
        "processor": _processor(),
        # The compiler tells a build of Debian's from one of one's own, which is slower.
        "python": f"{platform.python_version()} ({platform.python_compiler()})",
        "kernel": platform.release(),
        "loadAverage": round(statistics.mean(loads), 1) if loads else None,
    }


def _processor() -> str:
    """As the kernel names it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def machine_now() -> dict[str, Any]:
    """The same, with how busy it is now."""
    return machine([os.getloadavg()[0]])


def compared_table(report: dict[str, Any]) -> str:
    """One line for each thing that was compared, then what is to be said to it.

    A smoke is not held against the goals.
    """
    is_smoke = report["isSmoke"]
    judged = () if is_smoke else ("goal", "reached")
    rows = [("work", "product", "reference", "ratio", *judged, "unit", "against")]
    for row in report["rows"]:
        reached = {None: "", True: "yes", False: "no"}[row["reached"]]
        shown = [figure(row[name]) for name in ("product", "reference", "ratio")]
        goal = () if is_smoke else (row["goal"] or "", reached)
        rows.append((row["work"], *shown, *goal, row["unit"], row["against"] or ""))
    lines = [f"{report['bench']}:"]
    if is_smoke:
        lines = [f"{report['bench']}: this only proves that the bench works, not how fast it is"]
    lines.append(_table(rows))
    if spent := list(spent_rows(report)):
        lines += ["", SPENT_HEAD, _table(spent), ""]
    lines += [f"note: {note}" for note in report["notes"]]
    return "\n".join([*lines, *(f"fault: {fault}" for fault in report["faults"])])


def soak_table(report: dict[str, Any]) -> str:
    """One line for each kind of call, then what was watched, then the verdict."""
    rows = [("call", "count", "p50 ms", "p95 ms", "p99 ms", "max ms", "failed")]
    for kind, row in sorted(report["latency"].items()):
        shown = (row["count"], row["p50Ms"], row["p95Ms"], row["p99Ms"], row["maxMs"])
        rows.append((kind, *map(str, shown), str(row["failed"])))
    lines = [_table(rows), ""]
    lines += [
        f"{point['second']:>5} s  {point['rssMiB']} MiB  {point['descriptors']} descriptors  "
        f"{point['threads']} threads  {point['cpuShare']} CPU  load {point['load']:.1f}"
        for point in report["course"]
    ]
    last = report["lastQuarter"]
    if last is not None:
        lines.append(
            f"the least of the last {last['seconds']} s against the quarter before: memory "
            f"{last['memoryGrewKiB']:+} KiB of {last['memoryAllowedKiB']} allowed, descriptors "
            f"{last['descriptorsGrew']:+}, threads {last['threadsGrew']:+}"
        )
    lines += [f"failed: {failure}" for failure in report["failures"]]
    lines += [f"fault: {fault}" for fault in report["faults"]] or ["it stood the load"]
    return "\n".join(lines)


def calls_table(report: dict[str, Any]) -> str:
    """One line for each kind of call and each part."""
    rows = [("call", "calls/s", "p50 ms", "p95 ms", "p99 ms", "CPU ms", "Redis", "Redis µs", "DNS")]
    for row in report["rows"]:
        names = ("perSecond", "p50Ms", "p95Ms", "p99Ms", "cpuMs", "redis", "redisMicros", "dns")
        rows.append((row["kind"], *("" if row[name] is None else str(row[name]) for name in names)))
    lines = [_table(rows), *(f"failed: {failure}" for failure in report["failures"])]
    return "\n".join([*lines, *(f"fault: {fault}" for fault in report["faults"])])


def pages_table(report: dict[str, Any]) -> str:
    """One line for each page: its times with few hostnames beside those with many."""
    few, many = f"{report['few']:,}", f"{report['holdings']:,}"
    rows = [
        ("page", f"median ms, {few}", f"{many}", f"p99 ms, {few}", f"{many}", f"KiB, {many}"),
    ]
    for row in report["rows"]:
        some, all_ = row["few"] or {}, row["many"] or {}
        kibi = round(all_.get("bytes", 0) / 1024)
        shown = [each.get(name, "") for name in ("medianMs", "p99Ms") for each in (some, all_)]
        rows.append((row["page"], *map(str, shown), str(kibi)))
    lines = [_table(rows), *(f"failed: {failure}" for failure in report["failures"])]
    return "\n".join([*lines, *(f"fault: {fault}" for fault in report["faults"])])


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
