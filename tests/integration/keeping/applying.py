"""Applies files of clients and claims to one Redis, and says what there is.

Used by the tests of `gateway clients apply`.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.integration.keeping.redises import Keeper


class Applier:
    """Applies texts to one Redis, and says what there is."""

    def __init__(self, keeper: Keeper, url: str, folder: Path) -> None:
        self.keeper = keeper
        self.url = url
        self.file = folder / "clients.toml"

    def run(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        self.file.write_text(text)
        return self.keeper.run(self.url, "clients", "apply", self.file, *options)

    def applied(self, text: str, *options: str) -> dict[str, Any]:
        result = self.run(text, "--json", "--yes", *options)
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer

    def clients(self) -> dict[str, Any]:
        listed = json.loads(self.keeper.done(self.url, "clients", "list", "--json"))
        return {each["clientId"]: each for each in listed}

    def claims(self) -> dict[str, str]:
        listed = json.loads(self.keeper.done(self.url, "claims", "list", "--json"))
        return {each["hostname"]: each["note"] for each in listed}


def client(client_id: str, *patterns: str, kind: str = "t") -> str:
    return (
        f'[[clients]]\nid = "{client_id}"\ntype = "{kind}"\npatterns = {json.dumps(patterns)}\n'
        'allow = ["198.51.100.0/24"]\ncapabilities = ["syncDnsRecords"]\n'
    )


def claim(hostname: str, note: str = "") -> str:
    return f'[[claims]]\nhostname = "{hostname}"\nnote = "{note}"\n'
