"""What the agent remembers of a hostname over restarts: one JSON file each.

Responsible for the file's shape, for writing it whole and for taking any file whatever: what cannot
be read counts as nothing remembered, which costs a question to the gateway, a record published
anew and one more run of the deploy hook, and never a certificate. Must not: hold a secret; the
files are readable by everybody. Called by `notebook`, and by `status`, which only reads.

`FORMAT` is raised when a key changes its meaning. Keys that are added need no other number: an
older agent ignores them, and what is missing has its default.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from gateway.agent.durable import (
    LONGEST_NAME,
    DiskFault,
    fitting,
    make_folder,
    read_file,
    replace_file,
)
from gateway.contract import DnsRecord, is_gateway_client_hostname
from gateway.contract.faults import described
from gateway.contract.responses import MAX_MILLISECONDS

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1

_SUFFIX: Final = ".json"
_MODE: Final = 0o644
_LONGEST_BYTES: Final = 1024 * 1024

Moment = Annotated[int, Field(ge=0, le=MAX_MILLISECONDS, strict=True)] | None
"""Epoch milliseconds, none after the last that a calendar has; None for never."""

_MOST_TRIES: Final = 1_000_000_000


@dataclass(frozen=True)
class Memory:
    """What is known of one hostname. Times are epoch milliseconds, faults whole sentences.

    `app_id` and `url` are for which application, and by which gateway, all of it was answered; None
    in a memory of before there were these. `published` is the record that the gateway last took,
    `wanted` what the source last gave; without `published_at_ms` it is to be published now.
    `renew_after_ms` belongs to the installed certificate. `deployed_version` is the version for
    which the deploy hook was the last to run, and succeeded; None while it runs. `hook_tries` is
    how often in a row it has failed for `hook_failed_version`, and the fault is of the last time.
    `certificate_awaits` is what the gateway has under way; until `…_held_until_ms` it wants no
    question, by its own word.
    """

    app_id: str | None = None
    url: str | None = None
    published: DnsRecord | None = None
    published_at_ms: Moment = None
    wanted: DnsRecord | None = None
    record_fault: str | None = None
    record_fault_since_ms: Moment = None
    record_held_until_ms: Moment = None
    certificate_fault: str | None = None
    certificate_fault_since_ms: Moment = None
    certificate_awaits: str | None = None
    certificate_held_until_ms: Moment = None
    asked_at_ms: Moment = None
    renew_after_ms: Moment = None
    next_ask_ms: Moment = None
    deployed_version: str | None = None
    hook_fault: str | None = None
    hook_fault_since_ms: Moment = None
    hook_failed_version: str | None = None
    hook_tries: Annotated[int, Field(ge=0, le=_MOST_TRIES, strict=True)] = 0

    def counting_for(self, app_id: str, url: str) -> Memory:
        """What of it counts for this application and gateway.

        What another one answered says nothing: then what is on disk is all that is left of it, and
        the hook, which was run here.
        """
        if self.app_id in (None, app_id) and self.url in (None, url):
            return replace(self, app_id=app_id, url=url)
        return Memory(
            app_id=app_id,
            url=url,
            wanted=self.wanted,
            deployed_version=self.deployed_version,
            hook_fault=self.hook_fault,
            hook_fault_since_ms=self.hook_fault_since_ms,
            hook_failed_version=self.hook_failed_version,
            hook_tries=self.hook_tries,
        )


_memory: Final = TypeAdapter(Memory)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A hostname's memory. `forgotten` says why it is empty though something is on the disk."""

    memory: Memory
    forgotten: str | None = None


class Memories:
    """The files `<state_dir>/state/<hostname>.json`. One writer at a time: see `lock`."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "state"

    def read(self, hostname: str) -> Recalled:
        """What is remembered; an empty memory where there is no file, or none that can be read.

        Repeatable.
        """
        path = self.path(hostname)
        try:
            return Recalled(_memory_of(read_file(path, _LONGEST_BYTES + 1)))
        except DiskFault as fault:
            is_first = isinstance(fault.__cause__, FileNotFoundError)
            return Recalled(Memory(), None if is_first else str(fault))
        except ValueError as fault:
            return Recalled(Memory(), f"{path} is not used: {fault}")

    def write(self, hostname: str, memory: Memory) -> None:
        """Remember; repeatable.

        Raises:
            DiskFault: what was remembered before still is.

        """
        path = self.path(hostname)
        make_folder(self._folder)
        replace_file(path, _content_of(memory), _MODE)

    def path(self, hostname: str) -> Path:
        """The file of a hostname."""
        if not is_gateway_client_hostname(hostname):
            raise ValueError(f"not a hostname: {hostname!r}")
        return self._folder / (fitting(hostname, LONGEST_NAME - len(_SUFFIX)) + _SUFFIX)


def _content_of(memory: Memory) -> bytes:
    records = {
        name: record and record.to_wire()
        for name, record in (("published", memory.published), ("wanted", memory.wanted))
    }
    document = {"format": FORMAT, **asdict(memory), **records}
    # Sentences quote other programs, whose text may hold what UTF-8 cannot.
    return json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _memory_of(content: bytes) -> Memory:
    """Raises `ValueError` with a phrase."""
    if len(content) > _LONGEST_BYTES:
        raise ValueError(f"it has more than {_LONGEST_BYTES} bytes")
    document = _document_of(content)
    written = document.pop("format", None)
    if type(written) is not int or written != FORMAT:
        raise ValueError(f"its format is {described(written)}, and this agent reads {FORMAT}")
    try:
        return _memory.validate_python(document, extra="ignore")
    except ValidationError as error:
        keys = sorted({str(fault["loc"][0])[:40] for fault in error.errors() if fault["loc"]})
        raise ValueError(f"it has another value than expected at {', '.join(keys)}") from None


def _document_of(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if type(document) is not dict:
        raise ValueError("it is not a JSON object")
    return document
