"""Runs what a person would run to see for themselves: dig, nsupdate, openssl.

Responsible for: showing each command so that it can be typed again, and reading its output.
Must not: put a secret on a command line, where everybody on the machine may read it.
Called by: `story`.
"""

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.bind import Tsig
from tests.lab.demo.telling import StoryFault, Teller
from tests.lab.process import find_program

Server = tuple[str, int]

_PROGRAM_LIMIT_SECONDS = 15.0
# How long a change may take to be seen at the secondary: NOTIFY and a transfer, milliseconds here.
_FOLLOWING_LIMIT_SECONDS = 10.0
_FOLLOWING_PAUSE_SECONDS = 0.02

_STATUS = re.compile(r"status: ([A-Z]+)")
_MARKER_PREFIX = '"gateway-owner='


@dataclass(frozen=True)
class Found:
    """What one server answered for one name, in dig's own lines."""

    status: str
    lines: tuple[str, ...]

    @property
    def records(self) -> list[str]:
        """Type and value of each record, sorted; an owner marker is called that."""
        records = []
        for line in self.lines:
            _, _, _, type_, value = line.split(maxsplit=4)
            is_marker = type_ == "TXT" and value.startswith(_MARKER_PREFIX)
            records.append("owner marker" if is_marker else f"{type_} {value}")
        return sorted(records)


class Programs:
    """The programs, run in `folder`, to which the files of `nsupdate` and `openssl` belong."""

    def __init__(self, folder: Path, teller: Teller) -> None:
        self._folder = folder
        self._teller = teller
        self._dig = find_program("dig", "bind9-dnsutils")
        self._nsupdate = find_program("nsupdate", "bind9-dnsutils")
        self._openssl = find_program("openssl", "openssl")

    def dig(self, server: Server, name: str, wanted: Sequence[str]) -> Found:
        """Everything that `server` holds at `name`; shown.

        Asked again for a moment as long as it is not `wanted`: a secondary is entitled to that.
        """
        arguments = [f"@{server[0]}", "-p", str(server[1]), "+noall", "+comments", "+answer"]
        arguments += ["+norecurse", name, "ANY"]
        end = time.monotonic() + _FOLLOWING_LIMIT_SECONDS
        while True:
            output = self._run([self._dig, *arguments])
            status = _STATUS.search(output)
            answer = [" ".join(line.split()) for line in output.splitlines() if line[:1] not in ";"]
            found = Found(status.group(1) if status else "none", tuple(filter(None, answer)))
            if found.records == sorted(wanted) or time.monotonic() > end:
                break
            time.sleep(_FOLLOWING_PAUSE_SECONDS)
        shown = [f"status: {found.status}", *found.lines]
        self._teller.command(f"dig {' '.join(arguments)}", (), shown)
        return found

    def serial(self, server: Server, zone: str) -> int:
        """The zone's serial number, which grows with every change of the zone; not shown."""
        arguments = [f"@{server[0]}", "-p", str(server[1]), "+short", "+norecurse", zone, "SOA"]
        fields = self._run([self._dig, *arguments]).split()
        try:
            return int(fields[2])
        except (IndexError, ValueError):
            raise StoryFault(f"dig {' '.join(arguments)}: no SOA record") from None

    def nsupdate(self, tsig: Tsig, script: Sequence[str]) -> None:
        """Change the zone by hand, as the owner of `tsig`; shown."""
        key_file = self._folder / f"{tsig.name}.key"
        key_file.touch(mode=0o600)
        key_file.write_text(tsig.statement())
        typed = "".join(f"{line}\n" for line in script)
        output = self._run([self._nsupdate, "-k", key_file.name], typed)
        self._teller.command(f"nsupdate -k {key_file.name}", script, output.splitlines())

    def openssl(self, *arguments: str) -> str:
        """Run openssl; shown with what it prints."""
        output = self._run([self._openssl, *arguments])
        self._teller.command(f"openssl {' '.join(arguments)}", (), output.splitlines())
        return output

    def public_key_of(self, private_key_pem: str) -> str:
        """The public half of a private key (PEM); neither is shown nor written to a file."""
        return self._run([self._openssl, "pkey", "-pubout"], private_key_pem)

    def public_key_in(self, certificate_file: str) -> str:
        """The public key (PEM) that a certificate in the folder is for; not shown."""
        return self._run([self._openssl, "x509", "-in", certificate_file, "-noout", "-pubkey"])

    def _run(self, command: Sequence[str], typed: str = "") -> str:
        name = Path(command[0]).name
        try:
            ended = subprocess.run(
                command,
                cwd=self._folder,
                input=typed,
                capture_output=True,
                text=True,
                timeout=_PROGRAM_LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StoryFault(f"{name} did not end in {_PROGRAM_LIMIT_SECONDS:g} s") from None
        if ended.returncode != 0:
            said = (ended.stderr + ended.stdout).strip()
            raise StoryFault(f"{name} ended with exit code {ended.returncode}: {said}")
        return ended.stdout
