"""A name that somebody fills up, to what fits into one message and beyond."""

from gateway.dns.outcome import OutcomeKind
from tests.integration.dns.conftest import V4, V6, Caller
from tests.integration.dns.hand import Hand

FILL = f"\\# 600 {{:04x}}{'00' * 598}"
"""A record of an unknown type, of 600 octets."""


def text(number: int, length: int) -> str:
    """A TXT value of so many characters, in strings of 250."""
    whole = f"{number:03}" + "x" * (length - 3)
    return " ".join(f'"{whole[start : start + 250]}"' for start in range(0, length, 250))


async def test_name_that_fits_into_no_message_is_read_by_types(caller: Caller, hand: Hand) -> None:
    await caller.publish(V4)
    for rdtype in ("TYPE65280", "TYPE65281"):
        for start in range(0, 60, 20):
            numbers = range(start, start + 20)
            hand.add(*(f"{caller.hostname} 300 {rdtype} {FILL.format(n)}" for n in numbers))
    kinds = [(await caller.publish(record)).kind for record in (V4, V6)]
    assert kinds == [OutcomeKind.UNCHANGED, OutcomeKind.UPDATED]
    assert (await caller.withdraw()).kind is OutcomeKind.DELETED


async def test_name_whose_texts_fit_into_no_update_is_told_in_words(
    caller: Caller, hand: Hand
) -> None:
    await caller.publish(V4)
    for start in range(0, 98, 14):
        numbers = range(start, start + 14)
        hand.add(*(f"{caller.hostname} 300 TXT {text(n, 640)}" for n in numbers))
    hand.add(f"{caller.hostname} 300 TXT {text(99, 1005)}")
    assert (await caller.publish(V4)).kind is OutcomeKind.UNCHANGED
    outcome = await caller.publish(V6)
    assert (outcome.kind, outcome.unknown) == (OutcomeKind.UNAVAILABLE, False)
    assert "too much to be stated in one message" in outcome.detail
