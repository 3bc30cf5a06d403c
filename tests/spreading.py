"""Says which tests go to the same process, where several processes share them.

Responsible for: keeping the tests of a file together, and those of several files that use the same
slow servers, which each further process would have to start for itself.
Must not: say in which order they run; they do as they are found.
Called by: `tests.conftest`, for pytest-xdist's `--dist loadfile`.
"""

from xdist.scheduler import LoadFileScheduling

_TOGETHER = (
    *(f"tests/integration/{name}/" for name in ("authorities", "keeping", "limits", "listener")),
    *(f"tests/integration/{name}/" for name in ("metrics", "page", "running", "store", "traces")),
    "tests/moods/",
)
_SCENE = "tests/screenshots"
_SCENE_FILES = tuple(
    f"tests/browser/test_{name}.py" for name in ("every_page", "screenshots", "without_script")
)


class ByServers(LoadFileScheduling):
    """Hands out the tests by the servers that they use."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """The name of the unit of work to which a test belongs."""
    file = nodeid.partition("::")[0]
    if file in _SCENE_FILES:
        return _SCENE
    return next((folder for folder in _TOGETHER if file.startswith(folder)), file)
