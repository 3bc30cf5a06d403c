"""What is remembered over restarts, and every file that is not used."""

import json
import math
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gateway.agent.clocks import moment
from gateway.agent.memory import FORMAT, Memories, Memory, Recalled
from gateway.contract import DnsRecord
from gateway.contract.responses import MAX_MILLISECONDS

_HOSTNAME = "relay.cluster-a.example.com"
_RECORD = DnsRecord(type="A", value="198.51.100.85", ttl=60)
_FULL = Memory(
    published=_RECORD,
    published_at_ms=1,
    record_fault="the zone is not reachable",
    record_fault_since_ms=2,
    certificate_fault="rate-limited: wait",
    certificate_fault_since_ms=3,
    asked_at_ms=4,
    renew_after_ms=5,
    next_ask_ms=6,
    deployed_version="0001-20231114T221320Z-aaaaaaaaaaaa",
    hook_fault="the deploy hook nginx ended with exit code 1",
    hook_fault_since_ms=7,
    hook_failed_version="0002-20231114T221320Z-bbbbbbbbbbbb",
    hook_tries=8,
)


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    return Memories(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state" / f"{_HOSTNAME}.json"


def test_memory_comes_back_as_it_was(memories: Memories) -> None:
    memories.write(_HOSTNAME, _FULL)
    assert memories.read(_HOSTNAME).memory == _FULL


def test_memory_is_the_hostnames_own(memories: Memories) -> None:
    memories.write(_HOSTNAME, _FULL)
    assert memories.read("other.example.com").memory == Memory()


def test_memory_is_empty_before_the_first_run(memories: Memories) -> None:
    assert memories.read(_HOSTNAME).memory == Memory()


def test_nothing_is_said_before_the_first_run(memories: Memories) -> None:
    assert memories.read(_HOSTNAME).forgotten is None


def test_later_memory_takes_the_place_of_an_earlier_one(memories: Memories) -> None:
    memories.write(_HOSTNAME, _FULL)
    memories.write(_HOSTNAME, replace(_FULL, hook_tries=9, published=None))
    assert memories.read(_HOSTNAME).memory == replace(_FULL, hook_tries=9, published=None)


def test_file_may_be_read_by_everybody(memories: Memories, tmp_path: Path) -> None:
    memories.write(_HOSTNAME, _FULL)
    files = [*(tmp_path / "state").iterdir()]
    assert [(each.name, oct(each.stat().st_mode & 0o777)) for each in files] == [
        (f"{_HOSTNAME}.json", "0o644")
    ]


def test_leftover_of_a_killed_run_is_taken_over(memories: Memories, file: Path) -> None:
    file.with_name(f".new-{file.name}").write_text("{")
    memories.write(_HOSTNAME, _FULL)
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not JSON"),
        (b"\x00" * 100, "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"{}", "its format is null, and this agent reads 1"),
        (b'{"format": 2}', "its format is the number 2, and this agent reads 1"),
        (b'{"format": true}', "its format is true, and this agent reads 1"),
        (b'{"format": 1, "hook_tries": -1}', "another value than expected at hook_tries"),
        (b'{"format": 1, "hook_tries": "1"}', "another value than expected at hook_tries"),
        (b'{"format": 1, "asked_at_ms": 1.5}', "another value than expected at asked_at_ms"),
        (b'{"format": 1, "published": {"type": "A"}}', "than expected at published"),
        (b'{"format": 1, "asked_at_ms": 1' + b"0" * 18 + b"}", "than expected at asked_at_ms"),
        (b'{"format": 1, "asked_at_ms": 1' + b"0" * 400 + b"}", "than expected at asked_at_ms"),
        (b'{"format": 1, "hook_tries": 1' + b"0" * 400 + b"}", "than expected at hook_tries"),
        (b" " * 2_000_000, "it has more than 1048576 bytes"),
    ],
    ids=range(16),
)
def test_file_that_cannot_be_used_is_told(
    memories: Memories, file: Path, content: bytes, reason: str
) -> None:
    file.write_bytes(content)
    recalled = memories.read(_HOSTNAME)
    assert recalled.memory == Memory()
    assert recalled.forgotten is not None
    assert recalled.forgotten.startswith(f"{file} is not used: ")
    assert reason in recalled.forgotten


def test_folder_in_the_files_place_is_told(memories: Memories, file: Path) -> None:
    file.mkdir()
    reason = f"cannot read {file}: Is a directory"
    assert memories.read(_HOSTNAME) == Recalled(Memory(), reason)


def test_named_pipe_in_the_files_place_is_told_at_once(memories: Memories, file: Path) -> None:
    os.mkfifo(file)
    reason = f"{file} is no file and in the way: remove it"
    assert memories.read(_HOSTNAME) == Recalled(Memory(), reason)


@pytest.mark.parametrize("memory", [Memory(), _FULL], ids=["new", "older"])
def test_memory_of_before_there_were_owners_counts(memory: Memory) -> None:
    older = replace(memory, app_id=None, url=None)
    assert older.counting_for("a", "u") == replace(memory, app_id="a", url="u")


def test_memory_counts_for_its_own_application_and_gateway_alone() -> None:
    memory = replace(_FULL, app_id="a", url="u", wanted=_RECORD)
    assert memory.counting_for("a", "u") == memory
    for app_id, url in (("b", "u"), ("a", "v")):
        left = memory.counting_for(app_id, url)
        kept = {name for name, value in vars(left).items() if value != vars(Memory())[name]}
        of_the_hook = {name for name in vars(memory) if name.startswith("hook_")}
        assert kept == {"app_id", "url", "wanted", "deployed_version", *of_the_hook}


def test_fault_is_over_when_the_file_is_written_anew(memories: Memories, file: Path) -> None:
    file.write_text("nonsense")
    assert memories.read(_HOSTNAME).forgotten is not None
    memories.write(_HOSTNAME, _FULL)
    assert memories.read(_HOSTNAME).forgotten is None


def test_keys_of_a_newer_agent_are_passed_by(memories: Memories, file: Path) -> None:
    file.write_text(json.dumps({"format": FORMAT, "asked_at_ms": 4, "mood": "good"}))
    assert memories.read(_HOSTNAME).memory == Memory(asked_at_ms=4)


def test_text_that_no_file_can_hold_is_kept_in_part(memories: Memories) -> None:
    memories.write(_HOSTNAME, Memory(record_fault="bad \udcff byte"))
    assert memories.read(_HOSTNAME).memory.record_fault == "bad ? byte"


def test_longest_hostname_has_a_file(memories: Memories) -> None:
    longest = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    memories.write(longest, _FULL)
    assert memories.read(longest).memory == _FULL


@pytest.mark.parametrize("hostname", ["../../etc/passwd", "relay", "a/b.example.com", "", ".."])
def test_other_names_than_hostnames_are_refused(memories: Memories, hostname: str) -> None:
    with pytest.raises(ValueError, match="not a hostname"):
        memories.read(hostname)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_KEYS = sorted(asdict(Memory()))
_NUMBERS = [key for key in _KEYS if key.endswith(("_ms", "_tries"))]
# One value that is refused has all of them forgotten, so most documents have few.
_DOCUMENTS = st.one_of(
    st.dictionaries(st.sampled_from(_NUMBERS), st.integers(0, 10**400), max_size=2),
    st.dictionaries(st.sampled_from(_NUMBERS), st.integers(0, 2**62) | _VALUES, max_size=2),
    st.dictionaries(st.sampled_from(_KEYS), _VALUES),
).map(lambda values: {"format": FORMAT, **values})


@given(document=_DOCUMENTS)
def test_whatever_is_remembered_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "state").mkdir()
    (folder / "state" / f"{_HOSTNAME}.json").write_text(json.dumps(document))
    remembered = asdict(Memories(folder).read(_HOSTNAME).memory)
    times = [value for name, value in remembered.items() if name.endswith("_ms")]
    assert all(moment(value).endswith(" UTC") for value in times if value is not None)
    assert float(remembered["hook_tries"]) < math.inf


def test_last_moment_of_the_calendar_is_kept(memories: Memories) -> None:
    memories.write(_HOSTNAME, Memory(next_ask_ms=MAX_MILLISECONDS))
    assert memories.read(_HOSTNAME).memory.next_ask_ms == MAX_MILLISECONDS


@given(content=st.binary(max_size=200))
def test_any_file_whatever_is_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "state").mkdir()
    (folder / "state" / f"{_HOSTNAME}.json").write_bytes(content)
    assert Memories(folder).read(_HOSTNAME).memory == Memory()
