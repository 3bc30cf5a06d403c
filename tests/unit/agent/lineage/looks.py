"""What is on disk, to compare with."""

from pathlib import Path


def modes(folder: Path) -> dict[str, str]:
    """The mode of each file in a folder."""
    return {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}


def tree(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder: names with content or, for a link, where it leads."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
