"""The hostile writer: one nsupdate with a key of its own, at random, where the gateway is at work.

Responsible for: what it does, drawn from a seeded source, and counting each of its updates in the
zone (`zonehistory`). It does what people and their programs do: adds, edits and removes records of
every kind at the gateway's names, above, below and beside them; and what only an enemy would: it
copies markers, breaks them, puts old ones back, cuts the zone.
Must not: know what the gateway does, except by reading the zone, nor run ahead of the callers: it
does one update for each hostname that it is told, mostly at that name.
Called by: `hostilerun`.
"""

import queue
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from typing import IO

import dns.message
import dns.name
import dns.query
import dns.rdatatype

from tests.faults.hostilecalls import ADDRESSES
from tests.faults.zonehistory import COUNTER_NAME, ZONE, Record
from tests.lab.bind import Tsig

_LIMIT_SECONDS = 5.0
_AIMED = 0.6
_REPAIRS_WITHIN = 6
_TTLS = (60, 300, 900)
_FOREIGN = (("A", "203.0.113.7"), ("A", "203.0.113.8"), ("AAAA", "2001:db8:f::7"))
_TEXTS = (
    '"v=spf1 -all"',
    '"site-verification=1"',
    '"two" "strings"',
    '"gateway-owner="',
    '"gateway-owner=v1:lab-1:AAAAAAAAAAAAAAAAAAAAAA"',
    '"gateway-owner=v9:lab-1:AAAAAAAAAAAAAAAAAAAAAA"',
)
_END_OF_ANSWER = ";; TSIG PSEUDOSECTION:"

Lines = list[str]


class HostileWriter:
    """`tell` it a hostname for each update; `finish` when all is over, and the cuts are mended."""

    def __init__(
        self,
        primary: tuple[str, int],
        tsig: Tsig,
        hostnames: Sequence[str],
        chance: random.Random,
    ) -> None:
        self.done: Counter[str] = Counter()
        self._primary = primary
        self._hostnames = hostnames
        self._chance = chance
        self._told: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._seen: dict[str, list[tuple[Record, Record]]] = {name: [] for name in hostnames}
        self._repairs: list[Lines] = []
        self._nsupdate = subprocess.Popen(
            ["nsupdate", "-y", tsig.for_command()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._say(f"server {primary[0]} {primary[1]}", f"zone {ZONE}")

    def tell(self, hostname: str) -> None:
        """Somebody is at work at this name."""
        self._told.put(hostname)

    def finish(self) -> None:
        """Do no more than what is left to mend, then end `run`."""
        self._told.put(None)

    def run(self) -> None:
        """Interfere until told to finish; ends nsupdate too."""
        ways = self._ways()
        names, weights = list(ways), [weight for weight, _ in ways.values()]
        while (hostname := self._told.get()) is not None:
            if self._chance.random() > _AIMED:
                hostname = self._chance.choice(self._hostnames)
            what = self._chance.choices(names, weights)[0]
            if self._repairs and self._chance.randrange(_REPAIRS_WITHIN) == 0:
                self._update("mend a cut or a wildcard", self._repairs.pop(0))
            else:
                self._update(what, ways[what][1](hostname))
        for repair in self._repairs:
            self._update("mend a cut or a wildcard", repair)
        self._nsupdate.communicate("quit\n", timeout=_LIMIT_SECONDS)

    def _ways(self) -> dict[str, tuple[int, Callable[[str], Lines]]]:
        """Each way to interfere: how often, and the lines of nsupdate for one hostname."""
        return {
            "delete the whole name": (14, lambda name: [f"delete {name}"]),
            "delete a type": (10, self._delete_type),
            "add an address": (5, lambda name: [f"add {name} {self._ttl()} {self._address()}"]),
            "edit an address": (6, self._edit_address),
            "add a text": (8, lambda name: [f"add {name} {self._ttl()} TXT {self._text()}"]),
            "delete a text": (4, lambda name: [f"delete {name} TXT {self._text()}"]),
            "change a TTL": (8, self._change_ttl),
            "copy a marker elsewhere": (3, self._steal_marker),
            "delete a marker": (4, self._delete_marker),
            "put an old record back": (5, self._restore),
            "put an old name back": (4, self._restore_name),
            "put an old marker back": (4, self._restore_marker),
            "make it an alias": (3, self._alias),
            "add another type": (6, self._add_other),
            "add below": (4, lambda name: [f"add x.{name} 300 A 203.0.113.9"]),
            "delete below": (4, lambda name: [f"delete x.{name}", f"delete _s._tcp.{name}"]),
            "add beside": (2, lambda name: [f"add beside.{_above(name)} 300 TXT {self._text()}"]),
            "cut the zone": (2, self._cut),
            "move it by a DNAME": (1, self._dname),
            "a wildcard above": (3, self._wildcard),
        }

    def _update(self, what: str, lines: Lines) -> None:
        self.done[what] += 1
        count = self.done.total()
        counting = [f"delete {COUNTER_NAME} TXT", f"add {COUNTER_NAME} 300 TXT {count}"]
        self._say(*(f"update {line}" for line in (*counting, *lines)), "send", "answer")
        # What it prints ends with its signature, in the line after this one.
        answer: list[str] = []
        while answer[-2:-1] != [_END_OF_ANSWER]:
            line = _out(self._nsupdate.stdout).readline()
            assert line, f"nsupdate ended: {answer}"
            answer.append(line.rstrip("\n"))
        assert any("status: NOERROR" in line for line in answer), (lines, answer)

    def _say(self, *lines: str) -> None:
        stdin = self._nsupdate.stdin
        assert stdin is not None
        stdin.write("\n".join([*lines, ""]))
        stdin.flush()

    def _records(self, name: str) -> list[Record]:
        """What is answered for a name; a marker is remembered with the address beside it."""
        query = dns.message.make_query(name, "ANY", flags=0)
        host, port = self._primary
        reply = dns.query.tcp(query, host, port=port, timeout=_LIMIT_SECONDS)
        owner = dns.name.from_text(name)
        records = [
            Record(name, dns.rdatatype.to_text(rrset.rdtype), rdata.to_text(), rrset.ttl)
            for rrset in reply.answer
            if rrset.name == owner
            for rdata in rrset
        ]
        markers = [each for each in records if each.value.startswith('"gateway-owner=v1:')]
        addresses = [each for each in records if each.type in ("A", "AAAA")]
        if len(markers) == len(addresses) == 1:
            self._seen[name].append((addresses[0], markers[0]))
        return records

    def _ttl(self) -> int:
        return self._chance.choice(_TTLS)

    def _address(self) -> str:
        """One of the gateway's own ones as often as not."""
        return " ".join(self._chance.choice((*_FOREIGN, *ADDRESSES[:3])))

    def _text(self) -> str:
        return self._chance.choice(_TEXTS)

    def _delete_type(self, name: str) -> Lines:
        return [f"delete {name} {self._chance.choice(('A', 'AAAA', 'TXT', 'MX', 'CAA', 'CNAME'))}"]

    def _edit_address(self, name: str) -> Lines:
        address = self._address()
        return [f"delete {name} {address.split()[0]}", f"add {name} {self._ttl()} {address}"]

    def _change_ttl(self, name: str) -> Lines:
        records = [each for each in self._records(name) if each.type != "CNAME"]
        if not records:
            return [f"add {name} {self._ttl()} TXT {self._text()}"]
        chosen = self._chance.choice(records)
        return [f"add {name} {self._ttl()} {chosen.type} {chosen.value}"]

    def _steal_marker(self, name: str) -> Lines:
        other = self._chance.choice(self._hostnames)
        self._records(other)
        if not self._seen[other]:
            return [f"add {name} {self._ttl()} TXT {self._text()}"]
        address, marker = self._chance.choice(self._seen[other])
        stolen = [f"add {name} {self._ttl()} TXT {marker.value}"]
        if self._chance.random() < 0.5:
            stolen.append(f"add {name} {self._ttl()} {address.type} {address.value}")
        return stolen

    def _delete_marker(self, name: str) -> Lines:
        markers = [each for each in self._records(name) if "gateway-owner=v1" in each.value]
        return [f"delete {name} TXT {each.value}" for each in markers] or [f"delete {name} TXT"]

    def _restore(self, name: str) -> Lines:
        self._records(name)
        if not self._seen[name]:
            return [f"add {name} {self._ttl()} MX 10 mail.example.org."]
        records = self._chance.choice(self._seen[name])
        chosen = self._chance.choice((records, records[:1], records[1:]))
        return [f"add {name} {each.ttl} {each.type} {each.value}" for each in chosen]

    def _restore_name(self, name: str) -> Lines:
        """As a backup has it: the record that was there, and nothing that came since but texts."""
        self._records(name)
        if not self._seen[name]:
            return [f"delete {name}"]
        records = self._chance.choice(self._seen[name])
        added = [f"add {name} {each.ttl} {each.type} {each.value}" for each in records]
        return [f"delete {name} A", f"delete {name} AAAA", *added]

    def _restore_marker(self, name: str) -> Lines:
        """Of another who had the very address that is there now, if there was one."""
        present = {each.data for each in self._records(name)}
        old = [
            marker
            for address, marker in self._seen[name]
            if address.data in present and marker.data not in present
        ]
        if not old:
            return self._restore(name)
        marker = self._chance.choice(old)
        return [f"add {name} {marker.ttl} TXT {marker.value}"]

    def _add_other(self, name: str) -> Lines:
        return [
            self._chance.choice(
                (
                    f"add {name} 300 MX 10 mail.example.org.",
                    f'add {name} 300 CAA 0 issue "ca.example.org"',
                    f"add _s._tcp.{name} 300 SRV 0 0 443 x.{name}.",
                )
            )
        ]

    def _alias(self, name: str) -> Lines:
        return [f"delete {name}", f"add {name} 300 CNAME x.{name}"]

    def _cut(self, name: str) -> Lines:
        level = self._chance.choice((name, _above(name)))
        self._repairs.append([f"delete {level} NS"])
        return [f"add {level} 300 NS ns.{ZONE}."]

    def _dname(self, name: str) -> Lines:
        self._repairs.append([f"delete {_above(name)} DNAME"])
        return [f"add {_above(name)} 300 DNAME elsewhere.example.org."]

    def _wildcard(self, name: str) -> Lines:
        wildcard = f"*.{_above(name)}"
        self._repairs.append([f"delete {wildcard}"])
        if self._seen[name] and self._chance.random() < 0.5:
            records = self._chance.choice(self._seen[name])
            return [f"add {wildcard} {each.ttl} {each.type} {each.value}" for each in records]
        return [
            f"add {wildcard} {self._ttl()} {self._address()}",
            f"add {wildcard} {self._ttl()} TXT {self._text()}",
        ]


def _above(name: str) -> str:
    return name.partition(".")[2]


def _out(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
