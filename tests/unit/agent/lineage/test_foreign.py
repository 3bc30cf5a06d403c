"""What others have in the link's place is refused and left alone."""

import os
from pathlib import Path

import pytest

from gateway.agent.lineage import FileAccess, InstallFailed, Lineage, Unusable
from gateway.client import Bundle, read_bundle
from tests.lab.certificates import LabAuthority
from tests.unit.agent.lineage.conftest import HOSTNAME


def test_folder_in_the_links_place_is_refused(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle]
) -> None:
    lineage.live.mkdir(parents=True)
    (lineage.live / "privkey.pem").write_text("mine")
    with pytest.raises(InstallFailed, match="is not a link of this agent: move it away"):
        lineage.install(bundles[0])
    assert (lineage.live / "privkey.pem").read_text() == "mine"


def test_file_in_the_links_place_is_refused(lineage: Lineage, bundles: list[Bundle]) -> None:
    lineage.live.parent.mkdir(parents=True)
    lineage.live.write_text("mine")
    with pytest.raises(InstallFailed, match="is not a link of this agent: move it away"):
        lineage.install(bundles[0])
    assert lineage.live.read_text() == "mine"


@pytest.mark.parametrize("target", ["/etc", "../archive", "../archive/other.example.com/x", "."])
def test_link_elsewhere_is_refused(lineage: Lineage, bundles: list[Bundle], target: str) -> None:
    lineage.live.parent.mkdir(parents=True)
    lineage.live.symlink_to(target)
    with pytest.raises(InstallFailed, match=f"leads to {target}, not to this agent's files"):
        lineage.install(bundles[0])
    assert lineage.live.readlink() == Path(target)


def test_link_to_another_hostnames_version_is_refused(
    tmp_path: Path, lineage: Lineage, bundles: list[Bundle], authority: LabAuthority
) -> None:
    issued = authority.issue("b.example.com")
    other = Lineage(tmp_path, "b.example.com", FileAccess())
    other.install(read_bundle(issued.chain_pem, issued.private_key_pem, "b.example.com"))
    lineage.live.symlink_to(other.live.readlink())
    with pytest.raises(InstallFailed, match="not to this agent's files"):
        lineage.install(bundles[0])


def test_folder_of_links_that_is_a_link_itself_is_refused(
    tmp_path: Path, bundles: list[Bundle]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "live").symlink_to(tmp_path / "elsewhere")
    lineage = Lineage(tmp_path / "mine", HOSTNAME, FileAccess())
    with pytest.raises(InstallFailed, match="must be a folder itself, not a link to one"):
        lineage.install(bundles[0])


def test_archive_that_is_a_link_is_used(tmp_path: Path, bundles: list[Bundle]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "archive").symlink_to(tmp_path / "elsewhere")
    lineage = Lineage(tmp_path / "mine", HOSTNAME, FileAccess())
    lineage.install(bundles[0])
    assert lineage.read() == bundles[0]
    assert os.listdir(tmp_path / "elsewhere") == [HOSTNAME]


def test_link_elsewhere_is_no_version_and_no_reason_to_sweep(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    versions = [lineage.install(bundle) for bundle in bundles[:2]]
    lineage.live.unlink()
    lineage.live.symlink_to("/etc")
    untidy = lineage.sweep()
    assert lineage.version is None
    assert sorted(each.name for each in archive.iterdir()) == versions
    assert "leads to /etc" in str(untidy)


def test_file_in_the_place_of_all_links_is_told(tmp_path: Path, lineage: Lineage) -> None:
    (tmp_path / "live").write_text("mine")
    assert lineage.read() == Unusable(f"cannot read the link {lineage.live}: Not a directory")
