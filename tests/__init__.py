"""The tests of the gateway; a package so that `tests.lab` is importable from scripts as well."""
