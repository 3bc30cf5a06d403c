"""Run as a program inside a network namespace: sets interfaces up, and says what is published.

Prints one JSON object: for each question the address, or the sentence that says why there is none.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from gateway.agent.addresses import AddressUnknown, InterfaceAddress, address

_SETUP = """
ip link set lo up
ip address add 198.51.100.7/32 dev lo
ip address add 198.51.100.9/32 dev lo label lo:web
ip address add 203.0.113.77/32 dev lo
ip address add 10.1.2.3/32 dev lo
ip link add relay0 type veth peer name far0
ip link set far0 up
ip link set relay0 up
ip -6 address add 2001:db8:2::5/64 dev relay0 nodad
ip -6 address add 2001:db8:1::5/64 dev relay0 nodad preferred_lft 0
ip link add quiet0 type veth peer name quiet1
ip link set quiet0 up
ip -6 address add 2001:db8:3::5/64 dev quiet0
ip link add bare0 type veth peer name bare1
"""


def main() -> None:
    run(_SETUP)
    Path("/proc/sys/net/ipv6/conf/relay0/use_tempaddr").write_text("2")
    run("ip -6 address add 2001:db8:0::5/64 dev relay0 nodad mngtmpaddr")
    answers: dict[str, Any] = {
        "lowest": ask("lo", "A"),
        "kept": ask("lo", "A", "203.0.113.77"),
        "labelled": ask("lo", "A", "198.51.100.9"),
        "loopback": ask("lo", "AAAA"),
        "lasting": ask("relay0", "AAAA"),
        "temporary": ask("relay0", "AAAA", temporary()),
        "had temporary": temporary(),
        "deprecated": ask("relay0", "AAAA", "2001:db8:1::5"),
        "tentative": ask("quiet0", "AAAA"),
        "bare": ask("bare0", "A"),
        "missing": ask("nowhere0", "A"),
    }
    run("ip address delete 203.0.113.77/32 dev lo")
    answers["gone"] = ask("lo", "A", "203.0.113.77")
    run("ip -6 address add 2001:db8:0::1/64 dev relay0 nodad")
    answers["lower came"] = ask("relay0", "AAAA", "2001:db8::5")
    sys.stdout.write(json.dumps(answers))


def ask(interface: str, record_type: Any, published: str | None = None) -> str:
    try:
        return asyncio.run(address(InterfaceAddress(interface, record_type), published))
    except AddressUnknown as unknown:
        return str(unknown)


def temporary() -> str | None:
    """The address that the kernel has made up by itself."""
    lines = run("ip -6 -oneline address show dev relay0 temporary").splitlines()
    return lines[0].split()[3].partition("/")[0] if lines else None


def run(commands: str) -> str:
    done = subprocess.run(["sh", "-ec", commands], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


if __name__ == "__main__":
    main()
