"""One HTTP answer of a CA, and how to read what it says about itself.

Pure: bytes and headers in, plain values out; the time is an argument. Whatever a CA sends, reading
it never raises: what can't be read is None. Judges nothing: that is `faults` and `reading`.

Called by the other modules of this package.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

MAX_WORDS_CHARACTERS: Final = 500
MAX_RETRY_AFTER_SECONDS: Final = 31 * 86400.0
MAX_SUBPROBLEMS: Final = 10

HIDDEN: Final = "[hidden]"

# RFC 8555 asks for 128 bits in a token, 22 characters; a nonce has no fewer in any known CA.
_RUNS: Final = re.compile(r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{20,})*")
_NAMED_NONCE: Final = re.compile(r"""(nonce\b["']?\s*[:=]\s*["']?|nonce\s+["'])[\w.+/=-]+""", re.I)
_MANY_CAPITALS: Final = 5

_TYPE_PREFIX: Final = "urn:ietf:params:acme:error:"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def json_object(self) -> dict[str, object] | None:
        """Answer the body as a JSON object, None when it is anything else."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def problem(self) -> "Problem | None":
        """Answer the problem document (RFC 7807) in the body, whatever the content type says."""
        return read_problem(self.json_object())

    @property
    def has_nonce(self) -> bool:
        """Whether it hands out a nonce: then the CA itself made it, and nothing in front of it."""
        return bool(self.headers.get("replay-nonce"))

    def retry_after_seconds(self, now_utc: datetime) -> float | None:
        """Answer how long the CA asks to wait, None when it doesn't say."""
        return read_retry_after(self.headers.get("retry-after"), now_utc)


@dataclass(frozen=True, slots=True)
class Problem:
    """A CA's problem document; `type` is without ACME's URN prefix, `""` when there was none.

    `is_acme`: its type is one of ACME's (RFC 8555, 6.7). Any JSON object passes for a problem
    document, also that of a proxy which knows nothing of ACME.
    """

    type: str
    detail: str
    subproblems: tuple["Problem", ...] = ()
    is_acme: bool = True

    @property
    def words(self) -> str:
        """Answer what the CA says, for a person: one line, bounded, no control characters.

        Whatever looks like a nonce, a token or a key authorization is left out.
        """
        return self.told(())

    def told(self, secrets: Iterable[str]) -> str:
        """Answer `words`, without these secrets either, whatever they look like."""
        texts = [_labelled(self)]
        texts += [_labelled(sub) for sub in self.subproblems]
        text = "; ".join(text for text in texts if text)
        # Before the line is cut: the rest of a secret would not be found any more.
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return one_line(without_secrets(text)) or "no reason given"


def read_problem(value: object) -> Problem | None:
    """Read a decoded problem document; None when the value can't be one."""
    if not isinstance(value, dict):
        return None
    subs = value.get("subproblems")
    named = _text(value.get("type"))
    return Problem(
        type=named.removeprefix(_TYPE_PREFIX).removeprefix("about:blank"),
        detail=_text(value.get("detail")) or _text(value.get("title")),
        subproblems=tuple(
            Problem(
                type=_text(sub.get("type")).removeprefix(_TYPE_PREFIX),
                detail=_text(sub.get("detail")) or _text(sub.get("title")),
                is_acme=_text(sub.get("type")).startswith(_TYPE_PREFIX),
            )
            for sub in (subs if isinstance(subs, list) else [])[:MAX_SUBPROBLEMS]
            if isinstance(sub, dict)
        ),
        is_acme=named.startswith(_TYPE_PREFIX),
    )


def read_retry_after(text: str | None, now_utc: datetime) -> float | None:
    """Read a Retry-After header in either form (RFC 9110, 10.2.3) as seconds from `now_utc`.

    A moment in the past is 0; more than a month is a month; what can't be read is None.
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        # Cut before converting: int() refuses thousands of digits.
        return min(float(text[:12]), MAX_RETRY_AFTER_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
        # A date without an offset is UTC: HTTP knows no other zone.
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        seconds = (moment - now_utc).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def one_line(text: str) -> str:
    """Make a foreign text safe to log and to hand on: one bounded line of visible characters."""
    # Categories C* are controls, direction marks and surrogates; Z* are all kinds of space.
    visible = "".join(
        " " if unicodedata.category(character)[0] in "CZ" else character
        for character in text[: 4 * MAX_WORDS_CHARACTERS]
    )
    line = " ".join(visible.split())
    if len(line) > MAX_WORDS_CHARACTERS:
        line = line[: MAX_WORDS_CHARACTERS - 1] + "…"
    return line


def without_secrets(text: str) -> str:
    """Put HIDDEN in the place of all that looks like a nonce, a token or a key authorization.

    By its looks: a long run of base64url that is neither a hostname (lower case), a hexadecimal
    number nor words joined together; and, whatever its looks, what stands quoted or after a colon
    behind the word nonce. Names of faults (`urn:ietf:…`) stay.
    """
    text = _NAMED_NONCE.sub(lambda found: found[1] + HIDDEN, text)
    return _RUNS.sub(lambda found: HIDDEN if _is_random(found[0]) else found[0], text)


def _is_random(run: str) -> bool:
    letters = [one for one in run if one.isalpha()]
    capitals = sum(one.isupper() for one in letters)
    if capitals == 0 or capitals == len(letters):
        return False
    # A name like externalAccountRequired has few capitals and no digits.
    return any(one.isdigit() for one in run) or capitals >= _MANY_CAPITALS


def _labelled(problem: Problem) -> str:
    return ": ".join(text for text in (problem.type, problem.detail) if text)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
