"""Inputs near good ones: whole values with damage, which random bytes never come close to.

Responsible for the ways in which a good input is damaged. Used by the tests of this folder.
"""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

_LONGEST = 400_000
_WORDS = [
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b'"',
    b"{",
    b"[" * 40,
    b"1e999",
    b"-0",
    b"9" * 400,
    b"NaN",
    b"null",
    b"true",
    b"\r\n\r\n",
    b"\x1b[2J",
    "\uff41\u3002\u00df\u200d\u0000".encode(),
    b"-----BEGIN CERTIFICATE-----",
    b"${jndi:x}",
    b"a" * 5_000,
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**53, 2**64, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(["", "*", ".", "A", "AAAA", "relay.example.test", "::1", "198.51.100.1/32"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with some damage: parts cut out, doubled, overwritten, moved in."""
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        end = min(len(content), at + draw(st.integers(0, 40)))
        part = content[at:end]
        new = draw(
            st.one_of(
                st.sampled_from([b"", part * 2, part[::-1], *_WORDS]),
                st.binary(max_size=16),
                st.sampled_from(seeds).map(lambda other: other[len(other) // 2 :]),
            )
        )
        content = content[:at] + new + content[end:]
    return content[:_LONGEST]


@st.composite
def altered(draw: st.DrawFn, seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of the seeds, in which some values are others, missing, or too many."""
    whole: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(seeds))))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = whole
        while True:
            if isinstance(place, list):
                keys: list[Any] = list(range(len(place)))
            else:
                keys = list(place)
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inner = place[key]
            if isinstance(inner, (dict, list)) and inner and draw(st.booleans()):
                place = inner
                continue
            if isinstance(place, dict) and draw(st.booleans()):
                place.pop(key)
            else:
                place[key] = draw(values)
            break
        if isinstance(place, dict) and draw(st.booleans()):
            place[draw(st.text())] = draw(values)
    return whole
