"""Where the token comes from, and what is said when there is none."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.client.tokens import TokenSource, TokenUnreadable

TOKEN = "gwc_0123456789abcdef"


def said_by(source: TokenSource) -> str:
    with pytest.raises(TokenUnreadable) as caught:
        source.read()
    return str(caught.value)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return file


def test_file_is_read_without_the_line_break_at_its_end(file: Path) -> None:
    assert TokenSource("file", str(file), {}).read() == TOKEN


def test_file_is_read_anew_when_the_token_was_rotated(file: Path) -> None:
    source = TokenSource("file", str(file), {})
    source.read()
    file.write_text("gwc_other")
    assert source.read() == "gwc_other"


def test_variable_is_read() -> None:
    assert TokenSource("env", "TOKEN", {"TOKEN": TOKEN}).read() == TOKEN


def test_credential_is_read_from_the_folder_that_systemd_names(file: Path) -> None:
    environ = {"CREDENTIALS_DIRECTORY": str(file.parent)}
    assert TokenSource("credential", "token", environ).read() == TOKEN


def test_line_of_an_environment_file_is_no_token(file: Path) -> None:
    file.write_text(f"TOKEN={TOKEN}\n")
    assert said_by(TokenSource("file", str(file), {})).endswith("begin with gwc_ or gwa_")


def test_variable_that_is_not_set_is_told() -> None:
    said = said_by(TokenSource("env", "TOKEN", {}))
    assert said == "the environment variable TOKEN is not set"


def test_credential_outside_of_systemd_is_told_with_what_the_unit_needs() -> None:
    said = said_by(TokenSource("credential", "token", {}))
    assert said.endswith("as it is in a unit with LoadCredential=token:PATH")


def test_file_that_is_not_there_is_told_with_its_path(tmp_path: Path) -> None:
    said = said_by(TokenSource("file", str(tmp_path / "token"), {}))
    assert said == f"the token file {tmp_path}/token cannot be read: No such file or directory"


def test_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    assert said_by(TokenSource("file", str(tmp_path), {})).endswith("is not a file")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no token: it is empty"),
        (b" \n\t\n", "holds no token: it is empty"),
        (b"gwc_a gwc_b", "must hold one token and nothing else"),
        (b"gwc_a\ngwc_b\n", "must hold one token and nothing else"),
        (b"gwc_\xff", "must hold one token and nothing else"),
        (b"gwc_a\x00", "must hold one token and nothing else"),
        (b"a" * 5000, "is too large to be a token"),
    ],
)
def test_content_that_is_no_token_is_told_and_not_shown(
    file: Path, content: bytes, said: str
) -> None:
    file.write_bytes(content)
    assert said_by(TokenSource("file", str(file), {})) == f"the token file {file} {said}"


@contextmanager
def another_program_writes(pipe: Path) -> Iterator[None]:
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_text, args=[f"{TOKEN}\n"], daemon=True)
    writing.start()
    yield
    writing.join()


def test_pipe_is_read_where_it_is_expected(tmp_path: Path) -> None:
    with another_program_writes(tmp_path / "pipe"):
        assert TokenSource("file", str(tmp_path / "pipe"), {}, may_be_pipe=True).read() == TOKEN


def test_pipe_is_refused_without_waiting_where_a_file_is_read_again_and_again(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert said_by(TokenSource("file", str(tmp_path / "pipe"), {})).endswith("is not a file")


def test_token_is_in_no_representation_of_its_source() -> None:
    source = TokenSource("env", "TOKEN", {"TOKEN": TOKEN})
    assert TOKEN not in f"{source!r} {source}"


@pytest.mark.parametrize(
    ("mode", "said"), [(0o644, "read"), (0o666, "read"), (0o604, "read"), (0o602, "changed")]
)
def test_file_that_others_may_use_is_warned_of(file: Path, mode: int, said: str) -> None:
    file.chmod(mode)
    warning = TokenSource("file", str(file), {}).warning()
    assert warning == (
        f"the token file {file} may be {said} by every user of this machine"
        f" (mode {mode:04o}): chmod 0600"
    )


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640])
def test_file_that_others_may_not_use_is_not_warned_of(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert TokenSource("file", str(file), {}).warning() is None


@pytest.mark.parametrize("source", [TokenSource("env", "T", {}), TokenSource("file", "/no", {})])
def test_place_without_a_file_is_not_warned_of(source: TokenSource) -> None:
    assert source.warning() is None
