"""A page of names, merged from lists that are read bit by bit: the first of all, in order."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.store.keys import BUCKETS, bucket_of
from gateway.store.name_index import Column, merged

NAMES = st.lists(st.from_regex(r"[ab]{1,3}[0-9]{0,2}\.(x|y-)[a-z]{1,2}", fullmatch=True))


def read_on(column: Column, stored: list[str], count: int) -> None:
    """As Redis answers: the next of a bucket's list behind the last that was read."""
    left = [name for name in stored if column.behind is None or name > column.behind]
    column.add(left[:count], is_last=len(left) < count)


@given(NAMES, NAMES, st.integers(1, 20), st.integers(1, 5))
def test_page_is_the_first_of_all_lists_together(
    names: list[str], more: list[str], wanted: int, at_once: int
) -> None:
    stored = {bucket: [] for bucket in range(BUCKETS)}  # type: dict[int, list[str]]
    for name in sorted({*names, *more}):
        stored[bucket_of(name)].append(name)
    columns = [Column(bucket) for bucket in range(BUCKETS)]
    found, asked = merged(columns, wanted)
    assert (found, asked) == ([], columns)
    while asked:
        for column in asked:
            read_on(column, stored[column.bucket], at_once)
        found, asked = merged(columns, wanted)
    assert found == sorted({*names, *more})[:wanted]


def test_list_that_can_change_nothing_any_more_is_not_asked_again() -> None:
    early, late = Column(bucket_of("a.example")), Column(bucket_of("relay.b.example"))
    early.add(["a.example"], is_last=False)
    late.add(["relay.b.example"], is_last=False)
    assert merged([early, late], 1) == (["a.example"], [])
    assert merged([early, late], 2) == (["a.example", "relay.b.example"], [early])


def test_what_no_gateway_has_listed_is_passed_by() -> None:
    column = Column(bucket_of("a.example"))
    column.add(["a.example", "of-another-bucket.example", "é.example", "\udcff"], is_last=False)
    assert (column.names, column.behind) == (["a.example"], "\udcff")


def test_list_out_of_order_is_read_forward_only_and_to_an_end() -> None:
    names = sorted(
        (name for n in range(2000) if bucket_of(name := f"n{n}.example") == 5), reverse=True
    )
    third, second, first = names[:3]
    column = Column(5, behind=first)
    column.add([third, first, second], is_last=False)
    assert (column.names, column.behind, column.is_read_out) == ([third, second], third, False)
    column.add([third, second], is_last=False)
    assert (column.names, column.is_read_out) == ([third, second], True)
