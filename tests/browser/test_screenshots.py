"""The pictures of the page, as `scripts/screenshots` takes them."""

from pathlib import Path

from playwright.sync_api import Browser

from tests.screenshots.scene import Scene
from tests.screenshots.taking import MOST_BYTES, PICTURES, take


def test_a_page_is_taken_in_all_its_looks(browser: Browser, played: Scene, tmp_path: Path) -> None:
    overview = next(each for each in PICTURES if each.name == "overview")
    files = list(take(browser, played, tmp_path, [overview]))
    assert {file.name for file in files} == {
        "overview-desktop.png",
        "overview-dark.png",
        "overview-phone.png",
        "overview-phone-dark.png",
    }
    for file in files:
        head = file.read_bytes()[:33]
        width = int.from_bytes(head[16:20], "big")
        assert width == (390 if "phone" in file.name else 1280)
        # One byte a pixel, with a palette.
        assert tuple(head[24:26]) == (8, 3)
        assert file.stat().st_size < MOST_BYTES
