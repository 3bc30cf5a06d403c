"""Pages from templates: Jinja2 with everything escaped, and the few words that all templates share.

Responsible for the template environment. Values are text, whoever wrote them: nothing is marked
safe, characters that are not for printing are made visible, and what is longer than anybody reads
is cut, so that a page costs little whatever lies in Redis. Must not: read anything but the
package's own templates. Called by `doors`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from gateway import __version__
from gateway.http.page.client_paths import client_path
from gateway.http.page.sessions import new_form_id
from gateway.http.page.shapes import Whole, path_to
from gateway.printable import printable
from gateway.views.times import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_SHOWN: Final = 4_096
"""In characters; only what a form or a link sends back comes whole."""

_LINES: Final = "\n"


def render(template: str, context: Mapping[str, object]) -> str:
    """A page's HTML; raises what the template does."""
    return environment().get_template(template).render(context)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The environment of all templates; they are compiled once for a process."""
    made = Environment(
        loader=PackageLoader("gateway.http.page"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters["utc"] = utc
    made.filters["iso"] = iso
    made.filters["ago"] = ago
    made.filters["duration"] = duration
    made.filters["whole"] = Whole
    made.globals["new_form_id"] = new_form_id
    made.globals["version"] = __version__
    made.globals["path_to"] = path_to
    made.globals["client_path"] = client_path
    return made


def utc(at_ms: int) -> str:
    """A time for people, to the second: `2026-11-30 11:52:54 UTC`."""
    moment = _moment(at_ms)
    return f"at {at_ms} ms" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at_ms: int) -> str:
    """The same for `<time datetime>`; empty for a time that no calendar has."""
    moment = _moment(at_ms)
    return "" if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(at_ms: int, now_ms: int) -> str:
    """How long ago that was, or how long it is until then."""
    if at_ms > now_ms:
        return f"in {duration(at_ms - now_ms)}"
    return f"{duration(now_ms - at_ms)} ago"


def _moment(at_ms: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _shown(value: object) -> object:
    """Each value that a template shows: of a length to read, and every character to be seen."""
    if type(value) is Whole:
        return _visible(value)
    if type(value) is not str:
        return value
    more = len(value) - LONGEST_SHOWN
    if more <= 0:
        return _visible(value)
    return f"{_visible(value[:LONGEST_SHOWN])} \N{HORIZONTAL ELLIPSIS}and {more} more characters"


def _visible(text: str) -> str:
    return printable(text.replace("\r\n", _LINES), keeps=_LINES)
