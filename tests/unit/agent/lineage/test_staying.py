"""Which versions stay, which go, and what is never touched."""

import os
from pathlib import Path

import pytest

from gateway.agent.lineage import Lineage
from gateway.client import Bundle


def test_previous_version_stays(lineage: Lineage, archive: Path, bundles: list[Bundle]) -> None:
    versions = [lineage.install(bundle) for bundle in bundles]
    assert sorted(os.listdir(archive)) == versions[-2:]


def test_previous_version_can_be_gone_back_to_by_hand(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    old, _ = (lineage.install(bundle) for bundle in bundles[:2])
    lineage.live.unlink()
    lineage.live.symlink_to(archive / old)
    assert lineage.read() == bundles[0]
    assert lineage.version == old


def test_name_of_a_version_that_was_turned_away_from_does_not_come_again(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    old, bad = (lineage.install(bundle) for bundle in bundles[:2])
    lineage.live.unlink()
    lineage.live.symlink_to(archive / old)
    assert lineage.install(bundles[1]) != bad


def test_version_before_a_return_by_hand_stays(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    old, _ = (lineage.install(bundle) for bundle in bundles[:2])
    lineage.live.unlink()
    lineage.live.symlink_to(archive / old)
    new = lineage.install(bundles[2])
    assert sorted(os.listdir(archive)) == [old, new]


def test_sweep_removes_what_a_killed_run_had_not_finished(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    version = lineage.install(bundles[0])
    unfinished = archive / f".new-0002-20231114T221320Z-{'b' * 12}"
    unfinished.mkdir()
    (unfinished / "privkey.pem").write_text("half a k")
    lineage.sweep()
    assert os.listdir(archive) == [version]


def test_sweep_spares_everything_while_the_link_is_gone(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    versions = [lineage.install(bundle) for bundle in bundles[:2]]
    lineage.live.unlink()
    lineage.sweep()
    assert sorted(os.listdir(archive)) == versions


def test_sweep_before_the_first_run_does_nothing(tmp_path: Path, lineage: Lineage) -> None:
    assert lineage.sweep() is None
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["backup", ".new-notes", "0001-mine", "notes.txt"])
def test_folder_of_a_person_is_not_removed(
    lineage: Lineage, archive: Path, bundles: list[Bundle], name: str
) -> None:
    lineage.install(bundles[0])
    (archive / name).mkdir()
    for bundle in bundles[1:]:
        lineage.install(bundle)
    assert name in os.listdir(archive)


def test_link_among_the_versions_is_not_followed(
    tmp_path: Path, lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    lineage.install(bundles[0])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "privkey.pem").write_text("mine")
    (archive / f"0000-20231114T221320Z-{'b' * 12}").symlink_to(tmp_path / "mine")
    for bundle in bundles[1:]:
        lineage.install(bundle)
    assert (tmp_path / "mine" / "privkey.pem").read_text() == "mine"


def test_version_with_a_persons_file_stays_whole_and_is_told(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    version = lineage.install(bundles[0])
    (archive / version / "dhparam.pem").write_text("mine")
    for bundle in bundles[1:3]:
        lineage.install(bundle)
    untidy = lineage.sweep()
    assert len(os.listdir(archive / version)) == 5
    assert untidy == (
        f"{archive / version} stays: it holds 'dhparam.pem', which is not the agent's"
    )


def test_nothing_is_told_when_it_could_be_removed(
    lineage: Lineage, archive: Path, bundles: list[Bundle]
) -> None:
    version = lineage.install(bundles[0])
    (archive / version / "dhparam.pem").write_text("mine")
    for bundle in bundles[1:3]:
        lineage.install(bundle)
    (archive / version / "dhparam.pem").unlink()
    assert lineage.sweep() is None
    assert version not in os.listdir(archive)
