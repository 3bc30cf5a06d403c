"""Single values of JSON that need no module of their own: whole numbers, flags, choices.

Responsible for telling them apart as JSON does: `true` is no number, `300.0` is the whole number
300, text is never taken for a number. Used by the schemas.
"""

from collections.abc import Sequence

from gateway.contract.faults import described


def whole_number_fault(value: object, low: int, high: int) -> str | None:
    """What keeps a value from being a whole number between two bounds, both included."""
    wanted = f"a whole number from {low} to {high}"
    # bool is a subclass of int, so only the exact types are numbers. inf and nan are no integers.
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    if is_whole and isinstance(value, int | float) and low <= value <= high:
        return None
    return f"must be {wanted}, not {described(value)}"


def flag_fault(value: object) -> str | None:
    """What keeps a value from being true or false."""
    if value is True or value is False:
        return None
    return f"must be true or false, not {described(value)}"


def choice_fault(value: object, choices: Sequence[str]) -> str | None:
    """What keeps a value from being one of a few words."""
    if type(value) is str and value in choices:
        return None
    listed = ", ".join(f'"{choice}"' for choice in choices)
    return f"must be one of {listed}, not {described(value)}"
