"""What the Sentinels say of the primary: whom they name, and how long that is certain to stay so.

Pure. A failover needs as many Sentinels as their quorum who find the primary down, and the votes
of a majority. So while enough of them find it well, it cannot have been replaced.
Called by `store.topology`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.store.places import Address

_WELL: Final = "master"
"""The flags of a primary that nobody suspects: s_down, o_down and the like stand beside it."""


@dataclass(frozen=True, slots=True)
class View:
    """What one Sentinel says: the primary's address, as of which failover, and whether it is well.

    `steady_seconds` is how long from its answer on it will not find the primary down. `quorum` is
    how many must find so of all the `sentinels` that this one knows.
    """

    epoch: int
    address: Address
    is_well: bool
    steady_seconds: float
    quorum: int
    sentinels: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whom the Sentinels name, and whether a majority of those that were asked does.

    `steady_seconds` is how long, from the questions on, there can be no failover; 0 when that is
    unknown.
    """

    address: Address
    is_of_majority: bool
    steady_seconds: float


def view_of(state: Mapping[str, str]) -> View:
    """Read the answer to SENTINEL MASTER."""
    down_after_ms = int(state.get("down-after-milliseconds", 0))
    since_reply_ms = int(state.get("last-ok-ping-reply", down_after_ms))
    return View(
        epoch=int(state["config-epoch"]),
        address=(state["ip"], int(state["port"])),
        is_well=state.get("flags") == _WELL,
        steady_seconds=max(0, down_after_ms - since_reply_ms) / 1000,
        quorum=int(state.get("quorum", 1)),
        sentinels=int(state.get("num-other-sentinels", 0)) + 1,
    )


def is_settled(views: Sequence[View], asked: int) -> bool:
    """Whether those that are still silent need not be waited for.

    That is when a majority of all that were `asked` name the same primary and find it well.
    """
    well = Counter((view.epoch, view.address) for view in views if view.is_well)
    newest = max((view.epoch for view in views), default=0)
    return any(count > asked // 2 and epoch == newest for (epoch, _), count in well.items())


def agreement(views: Sequence[View], asked: int) -> Agreement:
    """Whom at least one view names: after a failover the others learn of it from who led it."""
    newest = max(views, key=lambda view: view.epoch)
    same = [view for view in views if (view.epoch, view.address) == (newest.epoch, newest.address)]
    well = [view for view in same if view.is_well]
    steady_seconds = 0.0
    if well and all(len(well) + view.quorum > view.sentinels for view in well):
        # Each quorum has one of these in it.
        steady_seconds = min(view.steady_seconds for view in well)
    return Agreement(newest.address, len(same) > asked // 2, steady_seconds)
