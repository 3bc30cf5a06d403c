"""Rows are judged by their rounds."""

from tests.bench.comparing import alone, alternate, at_least, at_most, compared


def test_whoever_came_first_comes_last_in_the_next_round() -> None:
    order: list[str] = []

    def run(name: str) -> str:
        order.append(name)
        return name

    pairs = alternate(3, lambda: run("product"), lambda: run("reference"))
    assert pairs == [("product", "reference")] * 3
    assert order == ["product", "reference", "reference", "product", "product", "reference"]


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    # By the medians alone, 30 and 10, it would be 3.
    row = compared("x", "calls/s", "y", [(10, 10), (30, 20), (100, 5)], at_least(1.5))
    assert (row["product"], row["reference"], row["ratio"]) == (30, 10, 1.5)
    assert row["reached"] is True


def test_a_goal_is_missed_on_the_other_side_of_its_bound() -> None:
    rounds = [(1.5, 1.0)]
    assert compared("x", "s", "y", rounds, at_most(1.4))["reached"] is False
    assert compared("x", "s", "y", rounds, at_most(1.5))["reached"] is True
    assert compared("x", "s", "y", rounds, at_least(1.6))["reached"] is False
    assert compared("x", "s", "y", rounds, None)["reached"] is None


def test_a_figure_without_a_reference_is_judged_by_itself() -> None:
    row = alone("memory", "KB", [19.0, 21.0, 18.0], at_most(20))
    assert (row["product"], row["ratio"], row["goal"], row["reached"]) == (
        *(19.0, None, "at most 20", True),
    )


def test_figures_keep_four_digits_that_count() -> None:
    assert alone("x", "s", [0.000123456])["product"] == 0.0001235
    assert alone("x", "bytes", [123456.0])["product"] == 123500.0
