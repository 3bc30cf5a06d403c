"""The keyring: what opens, what doesn't, and what its file may look like."""

import base64
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.sealing import (
    KEY_BYTES,
    MAX_FILE_BYTES,
    KeyMissing,
    Keyring,
    KeyringInvalid,
    SealBroken,
    key_id_of,
    load_keyring,
    new_keyring_text,
)
from tests.unit.certificates.properties import untimed

FIRST = ("first", bytes(range(32)))
SECOND = ("second", bytes(range(32, 64)))
RING = Keyring([FIRST, SECOND])

texts = st.text(max_size=20)
bindings = st.lists(texts, max_size=4)


def line(key_id: str, key: bytes) -> str:
    return f"{key_id} {base64.b64encode(key).decode()}"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "keyring"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


@untimed
@given(st.binary(max_size=200), texts, bindings)
def test_opens_what_was_sealed_with_the_same_words(
    plaintext: bytes, purpose: str, bound_to: list[str]
) -> None:
    sealed = RING.seal(plaintext, purpose=purpose, bound_to=bound_to)
    assert RING.open(sealed, purpose=purpose, bound_to=bound_to) == plaintext


@untimed
@given(st.binary(max_size=40), st.data())
def test_does_not_open_when_any_character_was_changed(
    plaintext: bytes, data: st.DataObject
) -> None:
    sealed = RING.seal(plaintext, purpose="p", bound_to=["b"])
    place = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.characters().filter(lambda one: one != sealed[place]))
    with pytest.raises(SealBroken):
        RING.open(sealed[:place] + other + sealed[place + 1 :], purpose="p", bound_to=["b"])


@untimed
@given(st.binary(max_size=40), st.data())
def test_does_not_open_when_it_was_cut(plaintext: bytes, data: st.DataObject) -> None:
    sealed = RING.seal(plaintext, purpose="p", bound_to=["b"])
    kept = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(SealBroken):
        RING.open(sealed[:kept], purpose="p", bound_to=["b"])


@untimed
@given(texts, texts)
def test_does_not_open_for_another_purpose(purpose: str, other: str) -> None:
    sealed = RING.seal(b"x", purpose=purpose, bound_to=["b"])
    if other != purpose:
        with pytest.raises(SealBroken):
            RING.open(sealed, purpose=other, bound_to=["b"])


@untimed
@given(bindings, bindings)
def test_does_not_open_when_bound_to_something_else(bound_to: list[str], other: list[str]) -> None:
    sealed = RING.seal(b"x", purpose="p", bound_to=bound_to)
    if other != bound_to:
        with pytest.raises(SealBroken):
            RING.open(sealed, purpose="p", bound_to=other)


def test_binding_keeps_its_parts_apart() -> None:
    sealed = RING.seal(b"x", purpose="p", bound_to=["ab", "c"])
    with pytest.raises(SealBroken):
        RING.open(sealed, purpose="p", bound_to=["a", "bc"])
    with pytest.raises(SealBroken):
        RING.open(sealed, purpose="pab", bound_to=["c"])


@untimed
@given(st.text(max_size=60))
def test_raises_only_seal_broken_for_any_text(text: str) -> None:
    for candidate in (text, f"v1:first:{text}"):
        with pytest.raises(SealBroken):
            RING.open(candidate, purpose="p", bound_to=[])


def test_seals_with_the_first_key_and_opens_with_the_others() -> None:
    before = Keyring([SECOND]).seal(b"old", purpose="p", bound_to=["b"])
    assert RING.seal(b"new", purpose="p", bound_to=["b"]).startswith("v1:first:")
    assert RING.open(before, purpose="p", bound_to=["b"]) == b"old"


def test_does_not_open_when_the_key_was_taken_out() -> None:
    sealed = RING.seal(b"x", purpose="p", bound_to=[])
    with pytest.raises(SealBroken, match="not in the keyring"):
        Keyring([SECOND]).open(sealed, purpose="p", bound_to=[])


def test_does_not_open_when_another_key_has_the_same_id() -> None:
    sealed = RING.seal(b"x", purpose="p", bound_to=[])
    with pytest.raises(SealBroken):
        Keyring([("first", SECOND[1])]).open(sealed, purpose="p", bound_to=[])


def test_two_seals_of_one_value_differ() -> None:
    seals = {RING.seal(b"x", purpose="p", bound_to=[]) for _ in range(100)}
    assert len(seals) == 100


def test_derives_one_subkey_for_each_key_and_purpose() -> None:
    marker = RING.derive("marker")
    assert [key_id for key_id, _ in marker] == ["first", "second"] == list(RING.key_ids)
    subkeys = [key for _, key in [*marker, *RING.derive("other")]]
    assert all(len(key) == KEY_BYTES for key in subkeys)
    assert len({*subkeys, FIRST[1], SECOND[1]}) == 6
    assert RING.derive("marker") == marker


def test_representation_shows_no_key() -> None:
    assert repr(RING) == "Keyring(first, second)"


def test_loads_a_fresh_file(tmp_path: Path) -> None:
    ring = load_keyring(write(tmp_path, new_keyring_text()))
    assert len(ring.key_ids) == 1
    assert ring.permission_fault is None
    sealed = ring.seal(b"x", purpose="p", bound_to=[])
    assert ring.open(sealed, purpose="p", bound_to=[]) == b"x"


def test_two_fresh_files_hold_different_keys() -> None:
    assert new_keyring_text().splitlines()[-1] != new_keyring_text().splitlines()[-1]


def test_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "# comment", "", line(*SECOND), "  " + line(*FIRST) + "  ")
    assert load_keyring(path).key_ids == ("second", "first")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_reports_a_file_that_others_may_touch(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, line(*FIRST))
    path.chmod(mode)
    fault = load_keyring(path).permission_fault
    assert fault is not None
    assert "0600" in fault


def test_names_every_fault_of_a_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        line(*FIRST),
        "onlyid",
        "a:b " + base64.b64encode(SECOND[1]).decode(),
        "short " + base64.b64encode(b"short").decode(),
        "text not*base64",
        line("first", SECOND[1]),
        line("again", FIRST[1]),
    )
    with pytest.raises(KeyringInvalid) as caught:
        load_keyring(path)
    faults = "\n".join(caught.value.faults)
    assert [f"line {number}:" in faults for number in range(1, 8)] == [False] + [True] * 6
    assert base64.b64encode(FIRST[1]).decode() not in faults


@pytest.mark.parametrize("content", [b"", b"# nothing\n\n"])
def test_refuses_a_file_without_a_key(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(content)
    with pytest.raises(KeyringInvalid, match="holds no key"):
        load_keyring(path)


def test_refuses_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(b"\xff\xfe\x00key")
    with pytest.raises(KeyringInvalid, match="line 1"):
        load_keyring(path)


def test_refuses_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(KeyringInvalid, match="larger"):
        load_keyring(path)


def test_refuses_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyringInvalid, match="cannot be read"):
        load_keyring(tmp_path / "none")


def test_reseals_with_the_first_key_what_another_one_sealed() -> None:
    before = Keyring([SECOND]).seal(b"x", purpose="p", bound_to=["b"])
    after = RING.reseal(before, purpose="p", bound_to=["b"])
    assert (key_id_of(before), key_id_of(after)) == ("second", "first")
    assert Keyring([FIRST]).open(after, purpose="p", bound_to=["b"]) == b"x"


def test_leaves_alone_what_the_first_key_sealed() -> None:
    sealed = RING.seal(b"x", purpose="p", bound_to=["b"])
    assert RING.reseal(sealed, purpose="p", bound_to=["b"]) == sealed


@pytest.mark.parametrize(("purpose", "bound_to"), [("other", ["b"]), ("p", ["elsewhere"])])
def test_does_not_reseal_what_belongs_elsewhere(purpose: str, bound_to: list[str]) -> None:
    """Else a moved value would be bound to its new place."""
    sealed = Keyring([SECOND]).seal(b"x", purpose="p", bound_to=["b"])
    with pytest.raises(SealBroken):
        RING.reseal(sealed, purpose=purpose, bound_to=bound_to)


def test_tells_a_missing_key_from_a_broken_value() -> None:
    sealed = RING.seal(b"x", purpose="p", bound_to=[])
    with pytest.raises(KeyMissing):
        Keyring([SECOND]).open(sealed, purpose="p", bound_to=[])
    with pytest.raises(SealBroken) as broken:
        RING.open(sealed, purpose="p", bound_to=["elsewhere"])
    assert not isinstance(broken.value, KeyMissing)


@pytest.mark.parametrize("text", ["", "v1", "v1:", "v0:first:x", "first", "::"])
def test_names_no_key_of_what_is_not_sealed(text: str) -> None:
    assert key_id_of(text) == ""
