"""`--keep`: the lines to try by hand while the lab runs on.

Responsible for: lines that work when they are pasted into a shell one by one, in their order.
Must not: print a token; the lines read them from files that only their owner can.
Called by: `__main__`.
"""

import json
import sys
from pathlib import Path
from urllib.parse import urljoin

from tests.lab.demo.story import CHALLENGE_NAME, GET, HOSTNAME, OWNERSHIP, RECORD_A, RELEASE, SYNC
from tests.lab.demo.telling import Teller
from tests.lab.lab import Lab


def invite(lab: Lab, folder: Path, client_token: str, teller: Teller) -> None:
    """Write the tokens into `folder` and print what to try."""
    _write_secret(folder / "admin-token", lab.config.admin_token)
    _write_secret(folder / "client-token", client_token)
    teller.title("\nThe lab runs until ^C. The operator's page, for a browser on this machine:")
    for line in ("", urljoin(lab.config.url, "/operator"), ""):
        teller.plain(line)
    teller.aside(f"It asks for the admin token, which is in {folder / 'admin-token'}.")
    teller.title("\nTo paste into a shell:")
    for line in ("", *_lines(lab, folder), ""):
        teller.plain(line)
    teller.aside(f"{GET} answers pending at first and starts an issuance: ask again.")
    teller.aside(f"Configuration and the gateway's log: {lab.config.config_file.parent}")


def _lines(lab: Lab, folder: Path) -> list[str]:
    primary, secondary = (
        f"dig @{host} -p {port} +norecurse +noall +answer"
        for host, port in (lab.bind.primary, lab.bind.secondary)
    )
    return [
        f"URL={lab.config.url}",
        f'TOKEN="$(cat {folder / "client-token"})"; ADMIN="$(cat {folder / "admin-token"})"',
        _curl("getGatewayClientContext", "TOKEN"),
        _curl("getGatewayClientContext", "ADMIN"),
        _curl(SYNC, "TOKEN", ownership=OWNERSHIP, record=RECORD_A),
        f"{primary} {HOSTNAME} ANY",
        f"{secondary} {HOSTNAME} ANY",
        _curl(GET, "TOKEN", ownership=OWNERSHIP),
        f"{primary} {CHALLENGE_NAME} TXT",
        _curl(RELEASE, "TOKEN", ownership=OWNERSHIP),
        _curl(SYNC, "TOKEN", ownership=OWNERSHIP, delete=True),
        f"curl -sS {lab.config.url.rpartition('/')[0]}/readyz; echo",
        f"{Path(sys.executable).with_name('gateway')} explain {HOSTNAME}"
        f" --config {lab.config.config_file}",
    ]


def _curl(method: str, variable: str, **fields: object) -> str:
    # Single quotes keep the JSON as it is; they are left for the moment of the variable.
    placeholder = f"'\"${variable}\"'"
    request = {"apiToken": placeholder, **fields}
    body = json.dumps({"method": method, "request": request}).replace(
        json.dumps(placeholder), f'"{placeholder}"'
    )
    return f"curl -sS --json '{body}' \"$URL\"; echo"


def _write_secret(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(f"{text}\n")
