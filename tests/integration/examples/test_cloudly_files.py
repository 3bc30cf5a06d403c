"""What `docs/examples/cloudly/files.mjs` puts on disk, and what it refuses to."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.lab.certificates import Issued, LabAuthority, key_pem, new_key
from tests.lab.process import find_program

FILES = Path(__file__).parents[3] / "docs" / "examples" / "cloudly" / "files.mjs"
HOSTNAME = "relay.example.com"
INSTALL = f"""
const {{ installCertificate }} = await import({json.dumps(str(FILES))});
const [folder, hostname, certificate] = process.argv.slice(1);
const {{ isNew }} = await installCertificate(folder, hostname, JSON.parse(certificate));
console.log(isNew ? 'new' : 'there');
"""
SYNCS_TOLD = """
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
const { open } = files;
files.open = async (path, ...more) => {
  const handle = await open(path, ...more);
  const sync = handle.sync.bind(handle);
  handle.sync = async () => { await sync(); console.log(`synced ${path}`); };
  return handle;
};
syncBuiltinESMExports();
"""
"""Has each fsync that succeeded be told, with its path; nothing else is changed."""


@pytest.fixture(scope="module")
def authority() -> LabAuthority:
    return LabAuthority()


def wire(issued: Issued, **changes: object) -> dict[str, Any]:
    """A certificate as the gateway answers it, but for the changes."""
    return issued.as_certificate(HOSTNAME).to_wire() | changes


def install(
    folder: Path, certificate: object, program: str = INSTALL
) -> subprocess.CompletedProcess[str]:
    """A certificate, put on disk by the example in a process of its own."""
    script = ["--input-type=module", "-e", program, "--", str(folder), HOSTNAME]
    return subprocess.run(
        [find_program("node", "nodejs"), *script, json.dumps(certificate)],
        capture_output=True,
        text=True,
        timeout=20,
    )


def refused(folder: Path, certificate: object) -> str:
    """What is said of a certificate that is not to be served; the disk is untouched."""
    before = sorted(folder.rglob("*"))
    done = install(folder, certificate)
    assert done.returncode == 1
    assert sorted(folder.rglob("*")) == before
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    return said


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / HOSTNAME).iterdir())


# --- versions -----------------------------------------------------------------------------------


def test_newer_certificate_replaces_the_older_by_one_link(
    tmp_path: Path, authority: LabAuthority
) -> None:
    current = tmp_path / HOSTNAME / "current"
    for _ in range(2):
        certificate = wire(authority.issue(HOSTNAME))
        assert install(tmp_path, certificate).stdout == "new\n"
        assert (current / "chain.pem").read_text() == certificate["chainPem"]
        assert (current / "privkey.pem").read_text() == certificate["privateKeyPem"]
        assert install(tmp_path, certificate).stdout == "there\n"


def test_version_before_the_live_one_stays_and_older_ones_go(
    tmp_path: Path, authority: LabAuthority
) -> None:
    for _ in range(3):
        install(tmp_path, wire(authority.issue(HOSTNAME)))
    assert names_in(tmp_path) == ["000002", "000003", "current"]
    assert (tmp_path / HOSTNAME / "current").readlink() == Path("000003")


def test_reader_that_opened_the_folder_before_a_swap_reads_its_pair(
    tmp_path: Path, authority: LabAuthority
) -> None:
    older, newer = (wire(authority.issue(HOSTNAME)) for _ in range(2))
    install(tmp_path, older)
    folder = os.open(tmp_path / HOSTNAME / "current", os.O_RDONLY | os.O_DIRECTORY)
    try:
        install(tmp_path, newer)
        for name, text in (("chain.pem", "chainPem"), ("privkey.pem", "privateKeyPem")):
            with open(os.open(name, os.O_RDONLY, dir_fd=folder)) as file:
                assert file.read() == older[text]
    finally:
        os.close(folder)


def test_leftovers_of_a_killed_run_are_swept_and_others_files_are_not(
    tmp_path: Path, authority: LabAuthority
) -> None:
    certificate = wire(authority.issue(HOSTNAME))
    install(tmp_path, certificate)
    home = tmp_path / HOSTNAME
    # Killed while writing, before the link was moved, and before the link had its name.
    for name in ("new.1d2c", "000002"):
        (home / name).mkdir()
        (home / name / "privkey.pem").touch()
    (home / "new.3e4f").symlink_to("000002")
    (home / "notes").mkdir()
    assert install(tmp_path, certificate).stdout == "there\n"
    assert names_in(tmp_path) == ["000001", "current", "notes"]


def test_file_that_was_damaged_is_written_again(tmp_path: Path, authority: LabAuthority) -> None:
    certificate = wire(authority.issue(HOSTNAME))
    install(tmp_path, certificate)
    key = tmp_path / HOSTNAME / "current" / "privkey.pem"
    key.write_text("")
    assert install(tmp_path, certificate).stdout == "new\n"
    assert key.read_text() == certificate["privateKeyPem"]


def test_each_folder_that_is_made_is_on_the_disk_before_the_run_ends(
    tmp_path: Path, authority: LabAuthority
) -> None:
    state = tmp_path / "state" / "certificates"
    done = install(state, wire(authority.issue(HOSTNAME)), SYNCS_TOLD + INSTALL)
    assert done.stdout.endswith("new\n"), done.stderr
    folders = (tmp_path, tmp_path / "state", state, state / HOSTNAME)
    assert set(done.stdout.splitlines()) >= {f"synced {folder}" for folder in folders}


# --- what is refused ----------------------------------------------------------------------------


def test_key_that_does_not_fit_is_refused(tmp_path: Path, authority: LabAuthority) -> None:
    certificate = wire(authority.issue(HOSTNAME), privateKeyPem=key_pem(new_key()))
    assert "the key does not fit" in refused(tmp_path, certificate)


def test_key_that_is_not_pkcs8_is_refused(tmp_path: Path, authority: LabAuthority) -> None:
    key = new_key()
    older_form = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    certificate = wire(authority.issue(HOSTNAME, key=key), privateKeyPem=older_form.decode())
    assert "PKCS#8" in refused(tmp_path, certificate)


@pytest.mark.parametrize("names", [["other.example.com"], [HOSTNAME, "other.example.com"]])
def test_certificate_for_another_name_is_refused(
    tmp_path: Path, authority: LabAuthority, names: list[str]
) -> None:
    said = refused(tmp_path, wire(authority.issue(HOSTNAME, names=names)))
    assert "it is for DNS:" in said


def test_certificate_that_is_told_to_be_for_another_name_is_refused(
    tmp_path: Path, authority: LabAuthority
) -> None:
    certificate = wire(authority.issue(HOSTNAME), hostname="other.example.com")
    assert "told to be for other.example.com" in refused(tmp_path, certificate)


@pytest.mark.parametrize(("begins_in_days", "said"), [(-20, "it ended "), (5, "it begins ")])
def test_certificate_that_is_not_valid_now_is_refused(
    tmp_path: Path, authority: LabAuthority, begins_in_days: int, said: str
) -> None:
    begins = datetime.now(UTC) + timedelta(days=begins_in_days)
    issued = authority.issue(HOSTNAME, not_before=begins, not_after=begins + timedelta(days=10))
    refusal = refused(tmp_path, wire(issued))
    assert said in refusal
    assert "; the clock says 2" in refusal


@pytest.mark.parametrize("name", ["validFrom", "validUntil"])
@pytest.mark.parametrize("told", [1_795_000_000_000, None])
def test_certificate_whose_dates_are_told_otherwise_is_refused(
    tmp_path: Path, authority: LabAuthority, name: str, told: object
) -> None:
    certificate = wire(authority.issue(HOSTNAME), **{name: told})
    assert "told otherwise" in refused(tmp_path, certificate)


def test_certificate_without_a_time_of_renewal_is_refused(
    tmp_path: Path, authority: LabAuthority
) -> None:
    certificate = wire(authority.issue(HOSTNAME), renewAfter=None)
    assert "when to renew it" in refused(tmp_path, certificate)


def test_chain_in_disorder_is_refused(tmp_path: Path, authority: LabAuthority) -> None:
    issued, others = authority.issue(HOSTNAME), authority.issue("other.example.com")
    certificate = wire(issued, chainPem=issued.chain_pem + others.chain_pem)
    assert "is not by the next one" in refused(tmp_path, certificate)


def test_chain_of_more_than_ten_certificates_is_refused(
    tmp_path: Path, authority: LabAuthority
) -> None:
    issued = authority.issue(HOSTNAME)
    certificate = wire(issued, chainPem=issued.chain_pem + authority.intermediate_pem * 9)
    assert "its chain has 11 certificates" in refused(tmp_path, certificate)


@pytest.mark.parametrize("more", [key_pem(new_key()), "words", "-----BEGIN CERTIFICATE-----\nAA"])
def test_chain_with_anything_but_certificates_is_refused(
    tmp_path: Path, authority: LabAuthority, more: str
) -> None:
    issued = authority.issue(HOSTNAME)
    assert "no PEM" in refused(tmp_path, wire(issued, chainPem=issued.chain_pem + more))


@pytest.mark.parametrize("pem", [None, "", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n"])
@pytest.mark.parametrize("name", ["chainPem", "privateKeyPem"])
def test_garbage_is_refused(
    tmp_path: Path, authority: LabAuthority, name: str, pem: str | None
) -> None:
    assert "no PEM" in refused(tmp_path, wire(authority.issue(HOSTNAME), **{name: pem}))


def test_certificate_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert "no PEM" in refused(tmp_path, None)
