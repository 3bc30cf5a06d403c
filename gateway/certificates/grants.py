"""What the ledger granted for an order: when that ends, and what of it comes back.

An issuance has a grant from the choice of its authority on, until it has come to a certificate or
to nothing. A new name that rests before it has an order keeps none: else all that was granted while
the CA was away would go there in the moment in which it is back, beyond its limits. Renewals do,
which no figure for new names holds.

What ends is stored first and given back then, once: whoever dies in between has spent something for
nothing, and no order is placed that was not charged. Pure. Called by the worker, and by whoever
simulates one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.certificates import events
from gateway.certificates.mishaps import may_be_issued

if TYPE_CHECKING:
    from gateway.certificates.states import Issuance


def is_over(before: Issuance, after: Issuance) -> bool:
    """Whether what was granted before a step is to be given back once the step is stored.

    Not where a certificate may exist.
    """
    return before.is_granted and not after.is_granted and not may_be_issued(before)


def may_be_placed(before: Issuance, event: events.Event) -> bool:
    """Whether the CA may have an order of it, given what happened; it counts as one then."""
    if before.order_url is not None or isinstance(event, events.StepBroke):
        return True
    return isinstance(event, events.AuthorityFailed) and event.may_be_done
