"""Type checkers of other programs look into the package only where it says that they may."""

from importlib.resources import files


def test_package_tells_type_checkers_that_it_is_typed() -> None:
    assert files("gateway").joinpath("py.typed").is_file()
