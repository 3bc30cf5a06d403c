"""What is on disk and cannot be used is told, and replaced."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.agent.lineage import Lineage, Unusable
from gateway.agent.version_files import is_key_withheld
from gateway.client import Bundle, read_bundle
from tests.lab.certificates import LabAuthority
from tests.unit.agent.lineage.conftest import HOSTNAME


def reason(lineage: Lineage) -> str:
    """Why what is live cannot be used."""
    found = lineage.read()
    assert isinstance(found, Unusable)
    return found.reason


def test_nothing_installed_is_told(lineage: Lineage) -> None:
    assert lineage.read() == Unusable(f"{lineage.live} does not exist")
    assert lineage.version is None


@pytest.mark.parametrize("name", ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"])
def test_missing_file_is_told(lineage: Lineage, bundles: list[Bundle], name: str) -> None:
    lineage.install(bundles[0])
    (lineage.live / name).unlink()
    assert lineage.read() == Unusable(f"{lineage.live.resolve() / name} is missing")


@pytest.mark.parametrize("name", ["cert.pem", "fullchain.pem"])
def test_file_of_another_certificate_is_told(
    lineage: Lineage, bundles: list[Bundle], name: str
) -> None:
    lineage.install(bundles[0])
    (lineage.live / name).write_text(bundles[1].chain_pem)
    assert f"/{name} does not fit " in reason(lineage)


def test_key_of_another_certificate_is_told(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    (lineage.live / "privkey.pem").write_text(bundles[1].private_key_pem)
    assert "The private key does not fit" in reason(lineage)


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"\xff\xfe", b"-----BEGIN CERTIFICATE--"])
@pytest.mark.parametrize("name", ["chain.pem", "privkey.pem"])
def test_file_that_is_spoiled_is_told(
    lineage: Lineage, bundles: list[Bundle], name: str, content: bytes
) -> None:
    lineage.install(bundles[0])
    (lineage.live / name).write_bytes(content)
    assert str(lineage.live.resolve()) in reason(lineage)


def test_no_fault_holds_the_key(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    (lineage.live / "chain.pem").write_text(bundles[0].private_key_pem)
    secret = bundles[0].private_key_pem.splitlines()[1]
    assert secret not in reason(lineage)


def test_named_pipe_in_a_files_place_holds_nothing_up(
    lineage: Lineage, bundles: list[Bundle]
) -> None:
    lineage.install(bundles[0])
    (lineage.live / "privkey.pem").unlink()
    os.mkfifo(lineage.live / "privkey.pem")
    assert reason(lineage)
    assert not is_key_withheld(lineage.live)


def test_huge_file_is_not_read_to_its_end(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    with (lineage.live / "chain.pem").open("r+b") as file:
        file.truncate(2**40)
    assert reason(lineage)


def test_version_that_is_gone_is_told(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    version = lineage.install(bundles[0])
    (archive / version).rename(archive / "elsewhere")
    assert lineage.read() == Unusable(
        f"cannot open the folder {archive / version}: No such file or directory"
    )
    assert lineage.version is None


def test_file_in_the_place_of_the_version_is_passed_by(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    version = lineage.install(bundles[0])
    (archive / version).rename(archive / "elsewhere")
    (archive / version).touch()
    assert reason(lineage) == f"cannot open the folder {archive / version}: Not a directory"
    lineage.install(bundles[0])
    assert lineage.read() == bundles[0]
    assert (archive / version).is_file()


def test_expired_pair_is_read_as_any_other(lineage: Lineage, authority: LabAuthority) -> None:
    issued = authority.issue(
        HOSTNAME,
        not_before=datetime(2020, 1, 1, tzinfo=UTC),
        not_after=datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=90),
    )
    bundle = read_bundle(issued.chain_pem, issued.private_key_pem, HOSTNAME)
    lineage.install(bundle)
    assert lineage.read() == bundle


@pytest.mark.parametrize("name", ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"])
def test_broken_version_is_replaced_by_the_same_certificate(
    lineage: Lineage, bundles: list[Bundle], name: str
) -> None:
    lineage.install(bundles[0])
    (lineage.live / name).write_text("")
    lineage.install(bundles[0])
    assert lineage.read() == bundles[0]
