"""What goes wrong, in the words of a page: a status and one sentence.

Responsible for which errors of the layers below a page can tell, and how. Pure. Called by `frame`
for a whole page, and by the pages for a part of one.
"""

from __future__ import annotations

from gateway.access.clients import ClientChanged, ClientUnreadable
from gateway.contract import CallError, Overloaded, RequestInvalid, Unavailable
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.documents import Contended, Unreadable


class PageFault(Exception):
    """A page ends with this status and this sentence; `retry_after_ms` where it may be repeated.

    `link` is a page that was meant or says more: its URL, and words.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        retry_after_ms: int | None = None,
        link: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after_ms = retry_after_ms
        self.link = link


KNOWN = (
    PageFault,
    CallError,
    StoreUnavailable,
    StoreRefused,
    Contended,
    ClientChanged,
    Unreadable,
    ClientUnreadable,
    TimeoutError,
)
"""The errors that `fault_of` has words for; whatever else is raised is a fault of the gateway."""

UNSURE = (StoreUnavailable, StoreRefused, Unavailable, TimeoutError)
"""Those that leave open whether what was begun was done."""


def unsure(fault: PageFault) -> PageFault:
    """The fault of a deed of which nobody knows whether it was done."""
    sentence = f"{fault.sentence} It may have been done all the same: look at what is there now."
    return PageFault(fault.status, sentence, fault.retry_after_ms)


def fault_of(error: Exception) -> PageFault:
    """The words for one of `KNOWN`."""
    if isinstance(error, PageFault):
        return error
    if isinstance(error, (Overloaded, Unavailable)):
        return PageFault(503, error.text, error.retry_after_ms)
    if isinstance(error, CallError):
        return PageFault(422 if isinstance(error, RequestInvalid) else 409, error.text)
    if isinstance(error, StoreUnavailable):
        return PageFault(503, f"{error}: nothing can be shown or done without it.", 1_000)
    if isinstance(error, Contended):
        return PageFault(409, "Others changed it at the same time: do it again.", 1_000)
    if isinstance(error, ClientChanged):
        return PageFault(409, f"{error}, and nothing was done.")
    if isinstance(error, (StoreRefused, Unreadable, ClientUnreadable)):
        return PageFault(500, f"{error}.")
    return PageFault(503, "It took too long: something that it waits for hangs.", 1_000)
