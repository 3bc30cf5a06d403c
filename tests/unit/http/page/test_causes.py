"""What counts as one cause: the same words at the same place, whatever differs by hostname."""

import pytest

from gateway.contract.names import Hostname
from gateway.http.page.causes import ALIKE_SHOWN, Need, alike
from gateway.views.times import time_words

A, B = Hostname("a.example.test"), Hostname("b.example.test")


def need(hostname: Hostname, why: str, place: str | None = "ca") -> Need:
    return Need(hostname, "failed", 1, why, place=place)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"NXDOMAIN at _acme-challenge.{A}", f"NXDOMAIN at _acme-challenge.{B}"),
        ("see https://ca.test/order/1x for more", "see https://ca.test/order/2y for more"),
        ("held until 2027-01-15T08:00:00Z", "held until 2027-01-16T09:10:11Z"),
        (f"held until {time_words(1)}", f"held until {time_words(1_800_000_000_000)}"),
        ("tried 3 times", "tried 17 times"),
        (
            "remove the TXT record ZGpM3sKx0vRk1mC9yQ7tBw2aLhNn-5e",
            "remove the TXT record aBcM3sKx0vRk1mC9yQ7tBw2aLhNn_7f",
        ),
    ],
)
def test_what_differs_from_hostname_to_hostname_makes_no_other_cause(one: str, other: str) -> None:
    (found,) = alike([need(A, one), need(B, other)])
    assert (found.count, [each.hostname for each in found.needs]) == (2, [A, B])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CAA forbids issuance", "the CAA record cannot be looked up"),
        ("not yet answered by 127.0.0.2:53", "not yet answered by 127.0.0.3:53"),
        ("not yet answered by [2001:db8::1]:53", "not yet answered by [2001:db8::2]:53"),
    ],
)
def test_other_words_and_other_servers_are_other_causes(one: str, other: str) -> None:
    assert [each.count for each in alike([need(A, one), need(B, other)])] == [1, 1]


def test_same_words_at_another_place_are_another_cause() -> None:
    assert len(alike([need(A, "no answer"), need(B, "no answer", "zone example.test")])) == 2


def test_cause_is_told_without_the_hostname_and_names_the_first_few() -> None:
    hostnames = [Hostname(f"h{number}.example.test") for number in range(ALIKE_SHOWN + 3)]
    (found,) = alike(need(each, f"no TXT at _acme-challenge.{each}") for each in hostnames)
    assert found.cause == "no TXT at _acme-challenge.…"
    assert [each.hostname for each in found.needs] == hostnames[:ALIKE_SHOWN]
    assert (found.count, found.more) == (ALIKE_SHOWN + 3, 3)


@pytest.mark.parametrize("word", ["a", "0:", "a.", "a1.", "-"])
def test_words_of_any_length_are_judged_in_no_more_than_their_time(word: str) -> None:
    # Where time grew with the square of the length, this would take hours.
    (found,) = alike([need(A, word * 300_000), need(B, word * 300_000)])
    assert found.count == 2
