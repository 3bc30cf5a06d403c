"""What is there after an installation, and that nothing is done twice."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.agent.lineage import FileAccess, Lineage
from gateway.client import Bundle, read_bundle
from tests.lab.certificates import LabAuthority
from tests.unit.agent.lineage.conftest import HOSTNAME
from tests.unit.agent.lineage.looks import modes, tree


def test_link_leads_to_the_version(tmp_path: Path, lineage: Lineage, bundles: list[Bundle]) -> None:
    version = lineage.install(bundles[0])
    link = tmp_path / "live" / HOSTNAME
    assert link.readlink() == Path(f"../archive/{HOSTNAME}/{version}")


def test_version_is_named_for_people(lineage: Lineage, bundles: list[Bundle]) -> None:
    version = lineage.install(bundles[0])
    assert version == f"0001-20231114T221320Z-{bundles[0].fingerprint[:12]}"


def test_files_are_those_that_certbot_makes(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    assert tree(lineage.live.resolve()) == {
        "cert.pem": bundles[0].leaf_pem.encode(),
        "chain.pem": bundles[0].chain_pem.encode(),
        "fullchain.pem": bundles[0].chain_pem.encode(),
        "privkey.pem": bundles[0].private_key_pem.encode(),
    }


@pytest.mark.usefixtures("strict_umask")
def test_key_alone_is_kept_from_others(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle]
) -> None:
    lineage.install(bundles[0])
    assert modes(lineage.live.resolve()) == {
        "cert.pem": "0o644",
        "chain.pem": "0o644",
        "fullchain.pem": "0o644",
        "privkey.pem": "0o600",
    }


@pytest.mark.usefixtures("strict_umask")
def test_folders_are_open_to_everybody(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle]
) -> None:
    lineage.install(bundles[0])
    folders = [path for path in tmp_path.rglob("*") if path.is_dir() and not path.is_symlink()]
    assert {oct(each.stat().st_mode & 0o777) for each in folders} == {"0o755"}


def test_combined_file_is_key_and_chain(tmp_path: Path, bundles: list[Bundle]) -> None:
    lineage = Lineage(tmp_path, HOSTNAME, FileAccess(combined=True, key_mode=0o640))
    lineage.install(bundles[0])
    combined = lineage.live / "combined.pem"
    assert combined.read_text() == bundles[0].private_key_pem + bundles[0].chain_pem
    assert modes(lineage.live.resolve())["combined.pem"] == "0o640"


def test_installed_is_read_as_it_was(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    assert lineage.read() == bundles[0]


def test_version_is_the_live_one(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    version = lineage.install(bundles[1])
    assert lineage.version == version


def test_hostnames_have_nothing_in_common(tmp_path: Path, authority: LabAuthority) -> None:
    for hostname in ("a.example.com", "b.example.com"):
        issued = authority.issue(hostname)
        bundle = read_bundle(issued.chain_pem, issued.private_key_pem, hostname)
        Lineage(tmp_path, hostname, FileAccess()).install(bundle)
    assert sorted(os.listdir(tmp_path / "live")) == ["a.example.com", "b.example.com"]


def test_longest_hostname_has_files(tmp_path: Path, authority: LabAuthority) -> None:
    longest = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])
    issued = authority.issue(longest)
    bundle = read_bundle(issued.chain_pem, issued.private_key_pem, longest)
    lineage = Lineage(tmp_path, longest, FileAccess())
    lineage.install(bundle)
    assert lineage.read() == bundle


def test_live_is_absolute_though_the_folder_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Lineage(Path("here"), HOSTNAME, FileAccess()).live == tmp_path / "here/live" / HOSTNAME


def test_same_again_changes_nothing(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle]
) -> None:
    version = lineage.install(bundles[0])
    before = tree(tmp_path)
    assert lineage.install(bundles[0]) == version
    assert tree(tmp_path) == before


def test_other_intermediates_make_a_new_version(lineage: Lineage, bundles: list[Bundle]) -> None:
    version = lineage.install(bundles[0])
    alone = replace(bundles[0], chain_pem=bundles[0].leaf_pem)
    assert lineage.install(alone) != version


@pytest.mark.parametrize(
    "access", [FileAccess(key_mode=0o640), FileAccess(combined=True)], ids=["mode", "combined"]
)
def test_access_is_changed_by_a_new_version(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle], access: FileAccess
) -> None:
    version = lineage.install(bundles[0])
    changed = Lineage(tmp_path, HOSTNAME, access)
    assert changed.install(bundles[0]) != version


def test_combined_file_goes_with_its_setting(tmp_path: Path, bundles: list[Bundle]) -> None:
    Lineage(tmp_path, HOSTNAME, FileAccess(combined=True)).install(bundles[0])
    lineage = Lineage(tmp_path, HOSTNAME, FileAccess())
    lineage.install(bundles[0])
    assert not (lineage.live / "combined.pem").exists()


def test_key_with_its_former_access_does_not_stay(
    tmp_path: Path, archive: Path, bundles: list[Bundle]
) -> None:
    Lineage(tmp_path, HOSTNAME, FileAccess(key_mode=0o640)).install(bundles[0])
    version = Lineage(tmp_path, HOSTNAME, FileAccess()).install(bundles[0])
    assert os.listdir(archive) == [version]


def test_key_of_the_previous_version_gets_the_present_access(
    tmp_path: Path, archive: Path, bundles: list[Bundle]
) -> None:
    old = Lineage(tmp_path, HOSTNAME, FileAccess(key_mode=0o640)).install(bundles[0])
    Lineage(tmp_path, HOSTNAME, FileAccess()).install(bundles[1])
    assert modes(archive / old)["privkey.pem"] == "0o600"


def test_access_that_a_person_changed_is_set_again(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.install(bundles[0])
    (lineage.live / "privkey.pem").chmod(0o644)
    lineage.install(bundles[0])
    assert modes(lineage.live.resolve())["privkey.pem"] == "0o600"


def test_files_that_are_as_configured_have_no_other_access(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle]
) -> None:
    assert not lineage.has_other_access
    lineage.install(bundles[0])
    assert not lineage.has_other_access
    assert Lineage(tmp_path, HOSTNAME, FileAccess(owner=os.getuid() + 1)).has_other_access


@pytest.mark.parametrize("name", ["privkey.pem", "chain.pem"])
def test_file_with_another_mode_is_seen(lineage: Lineage, bundles: list[Bundle], name: str) -> None:
    lineage.install(bundles[0])
    (lineage.live / name).chmod(0o666)
    assert lineage.has_other_access


@pytest.mark.parametrize("combined", [True, False], ids=["wanted", "not-wanted"])
def test_combined_file_that_came_or_went_is_seen(
    tmp_path: Path, bundles: list[Bundle], combined: bool
) -> None:
    lineage = Lineage(tmp_path, HOSTNAME, FileAccess(combined=combined))
    lineage.install(bundles[0])
    if combined:
        (lineage.live / "combined.pem").unlink()
    else:
        (lineage.live / "combined.pem").touch(0o600)
    assert lineage.has_other_access


@pytest.mark.parametrize(
    "hostname", ["../../etc", "a/b.example.com", "relay", "", ".", "A.example"]
)
def test_other_names_than_hostnames_are_refused(tmp_path: Path, hostname: str) -> None:
    with pytest.raises(ValueError, match="not a hostname"):
        Lineage(tmp_path, hostname, FileAccess())


def test_certificate_for_another_hostname_is_refused(
    lineage: Lineage, bundles: list[Bundle]
) -> None:
    with pytest.raises(ValueError, match=r"for b\.example\.com in place of"):
        lineage.install(replace(bundles[0], hostname="b.example.com"))
