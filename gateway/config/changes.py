"""Which keys two configurations differ in, and which of those take effect by a restart only.

Pure. Must not: show a value, which may be a secret. Called by `gateway.reloading`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeGuard

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gateway.config.settings import Settings

_FIXED: Final = ("state_dir", "redis.url", "http", "metrics", "traces")
"""What a running process cannot exchange without dropping a call: the Redis that all processes
share, its listeners, and where it sends traces. A table's name stands for all its keys."""

_FREE: Final = ("http.trusted_proxies", "metrics.census_seconds")
"""The exceptions: what is not the listener's own."""


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """The keys whose values differ, as in `gateway.toml`, with the index of a list's table.

    A list with another number of tables counts as one key.
    """
    return list(_changes("", before, after))


def keys_needing_restart(changed: Iterable[str]) -> list[str]:
    """Those of the changed keys that a reload cannot take."""
    return [key for key in changed if _is_one_of(key, _FIXED) and not _is_one_of(key, _FREE)]


def _is_one_of(key: str, keys: Iterable[str]) -> bool:
    return any(key == each or key.startswith(f"{each}.") for each in keys)


def _changes(key: str, before: object, after: object) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, BaseModel) and type(before) is type(after):
        for name, field in type(before).model_fields.items():
            inner = f"{key}.{field.alias or name}".removeprefix(".")
            yield from _changes(inner, getattr(before, name), getattr(after, name))
    elif _is_list_of_tables(before) and _is_list_of_tables(after) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(f"{key}[{index}]", one, other)
    else:
        yield key


def _is_list_of_tables(value: object) -> TypeGuard[Sequence[BaseModel]]:
    return isinstance(value, list | tuple) and all(isinstance(each, BaseModel) for each in value)
