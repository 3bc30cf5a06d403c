"""The lab that the examples run on, and another person's hand in its zones."""

from pathlib import Path

import pytest

from tests.integration.dns.hand import Hand
from tests.lab.lab import Lab


@pytest.fixture(scope="package")
def hand(lab: Lab) -> Hand:
    return Hand.at(lab.bind)


@pytest.fixture
def admin_token_file(lab: Lab, tmp_path: Path) -> Path:
    file = tmp_path / "admin-token"
    file.touch(mode=0o600)
    file.write_text(f"{lab.config.admin_token}\n")
    return file
