"""The product beside its reference: rounds that alternate, medians, ratios, and the goals.

Responsible for one row of a report: what was measured in each round, for what, and whether the goal
was met. A ratio is the median of the rounds' own ratios: what else the machine does meets both of a
round alike. Pure but for what it is told to run. Called by the modules of `rows`.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_DIGITS = 4

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached: by the ratio to the reference, or by a figure that has none."""

    bound: float
    is_least: bool

    def is_met(self, value: float) -> bool:
        """Whether a ratio or a figure reaches it."""
        return value >= self.bound if self.is_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'at least' if self.is_least else 'at most'} {self.bound:g}"


def at_least(bound: float) -> Goal:
    """More is better."""
    return Goal(bound, is_least=True)


def at_most(bound: float) -> Goal:
    """Less is better."""
    return Goal(bound, is_least=False)


def alternate(
    rounds: int, product: Callable[[], P], reference: Callable[[], R]
) -> list[tuple[P, R]]:
    """Run both so many times; whoever came first in one round comes last in the next."""
    seen: list[tuple[P, R]] = []
    for number in range(rounds):
        if number % 2:
            second = reference()
            seen.append((product(), second))
        else:
            first = product()
            seen.append((first, reference()))
    return seen


def compared(
    work: str, unit: str, against: str, pairs: Sequence[tuple[float, float]], goal: Goal | None
) -> dict[str, Any]:
    """A row: product and reference of each round, which must both be more than nothing."""
    ratio = statistics.median(product / reference for product, reference in pairs)
    return {
        "work": work,
        "unit": unit,
        "product": _median(product for product, _ in pairs),
        "against": against,
        "reference": _median(reference for _, reference in pairs),
        "ratio": _rounded(ratio),
        "goal": goal and str(goal),
        "reached": goal and goal.is_met(ratio),
        "rounds": [[_rounded(each) for each in pair] for pair in pairs],
    }


def alone(
    work: str, unit: str, values: Sequence[float], goal: Goal | None = None
) -> dict[str, Any]:
    """A row without a reference: the goal is for the figure itself."""
    value = statistics.median(values)
    return {
        "work": work,
        "unit": unit,
        "product": _rounded(value),
        "against": None,
        "reference": None,
        "ratio": None,
        "goal": goal and str(goal),
        "reached": goal and goal.is_met(value),
        "rounds": [[_rounded(each)] for each in values],
    }


def _median(values: Any) -> float:
    return _rounded(statistics.median(values))


def _rounded(value: float) -> float:
    """To four digits that count: figures go from microseconds to millions."""
    return float(f"{value:.{_DIGITS}g}")
