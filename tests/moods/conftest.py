"""Fixtures: one lab for the tests whose moods concern their own hostname only."""

from collections.abc import Iterator

import pytest

from tests.integration.service.calling import Ownership
from tests.lab.bind import BindPair
from tests.moods.moodlab import MoodLab, mood_lab


@pytest.fixture(scope="package")
def moody(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[MoodLab]:
    with mood_lab(tmp_path_factory.mktemp("moods"), bind) as lab:
        yield lab


@pytest.fixture
def mine(moody: MoodLab) -> Ownership:
    return moody.world.ownership()
