"""What fails at Redis, as the rest of the gateway sees it: two errors, and which is which.

Nothing else of redis-py's own errors leaves `gateway.store`. Pure. Called by the modules of this
package.
"""

from __future__ import annotations

from typing import Final

from redis.exceptions import (
    AuthenticationError,
    ClusterCrossSlotError,
    ClusterDownError,
    ConnectionError as RedisConnectionError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeoutError,
    TryAgainError,
)

UNREACHABLE: Final = (RedisConnectionError, RedisTimeoutError, OSError)
"""What a node that is gone, loads its file or answers too late raises; asyncio's timeout is one."""

_PASSING: Final = (ClusterDownError, ReadOnlyError, OutOfMemoryError, TryAgainError)
_PASSING_WORDS: Final = {"MISCONF", "NOREPLICAS", "BUSY"}


class StoreUnavailable(Exception):
    """Redis cannot be reached or cannot take writes now; nothing is known of the last command."""


class StoreRefused(Exception):
    """Redis answered a command with an error: the gateway or Redis's configuration is at fault."""


class WrongType(StoreRefused):
    """Something of another type lies under a key: no gateway has written it."""


class KeysApart(StoreRefused):
    """The keys of one command lie in several slots, of a Redis that has such."""


class NotPrimary(RedisConnectionError):
    """A server that a failover has made a replica, or not yet the primary: as if it were gone."""


def judged(error: RedisError | OSError) -> StoreUnavailable | StoreRefused:
    """Tell faults that pass by themselves (a failover, a full disk) from refusals."""
    if isinstance(error, AuthenticationError):
        return StoreUnavailable("Redis does not take the user or the password of redis.url")
    if isinstance(error, NotPrimary):
        return StoreUnavailable(str(error))
    if isinstance(error, UNREACHABLE):
        return StoreUnavailable("Redis cannot be reached")
    if isinstance(error, _PASSING):
        return StoreUnavailable(f"Redis takes no writes now: {type(error).__name__}")
    if not isinstance(error, ResponseError):
        return StoreUnavailable(f"Redis failed: {type(error).__name__}")
    if isinstance(error, NoPermissionError):
        return StoreRefused("Redis's user may not run a command that the gateway needs (NOPERM)")
    if isinstance(error, ClusterCrossSlotError):
        return KeysApart("Redis refused a command: CROSSSLOT")
    # Only the first word: what follows may repeat a value.
    word = str(error).split(" ", 1)[0]
    if word in _PASSING_WORDS:
        return StoreUnavailable(f"Redis takes no writes now: {word}")
    kind = WrongType if word == "WRONGTYPE" else StoreRefused
    return kind(f"Redis refused a command: {word}")
