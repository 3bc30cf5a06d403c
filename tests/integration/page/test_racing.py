"""Operators at two processes act on one client at once: one is told that it is done, and it is.

What each does at which moment is chosen in `integration/holdings/test_changing_as_seen.py`; here
it is whatever two processes make of it.
"""

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.integration.page.browsing import Form, Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.page.making import NEW, TOKEN, make, shown
from tests.integration.service.calling import CONTEXT, Caller
from tests.lab.lab import Lab

ROUNDS = 5
ROTATIONS = 5


@pytest.fixture
def operators(page_lab: Lab, browse: Browse) -> list[PlainBrowser]:
    """Enough browsers for all that is sent at once, each with a session of its own."""
    found = [browse(each.base_url) for each in page_lab.gateways * 3]
    for each in found:
        each.log_in(page_lab.config.admin_token)
    return found


def all_at_once(
    sent: Sequence[tuple[PlainBrowser, Form, str, dict[str, str]]],
) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(sent)) as pool:
        return list(pool.map(lambda each: each[0].send(each[1], each[2], **each[3]), sent))


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_of_rotations_and_a_revocation_at_once_one_is_done(
    page_lab: Lab, operators: list[PlainBrowser], round_: int
) -> None:
    client_id = f"raced-{round_}-{secrets.token_hex(6)}"
    make(operators[0], client_id)
    paths = [f"/operator/clients/{client_id}/rotate"] * ROTATIONS
    paths.append(f"/operator/clients/{client_id}/revoke")
    fields = [{"overlap_seconds": "0"}] * ROTATIONS + [{"typed": client_id}]
    forms = [each.page(path).form() for each, path in zip(operators, paths, strict=True)]
    answers = all_at_once(list(zip(operators, forms, paths, fields, strict=True)))
    done = [each for each in answers if each.status_code != 409]
    assert [each.status_code for each in done] in ([200], [303])
    assert all("has changed" in each.text for each in answers if each not in done)
    for token in TOKEN.findall(done[0].text):
        assert Caller(page_lab.config.url, token).call(CONTEXT)
    told = shown(page_lab, client_id)
    assert told["policyGeneration"] == 2


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_of_two_forms_of_a_new_client_at_once_one_makes_it(
    page_lab: Lab, operators: list[PlainBrowser], round_: int
) -> None:
    client_id = f"twice-{round_}-{secrets.token_hex(6)}"
    two = operators[:2]
    patterns = [f"{number}.example.test" for number in range(len(two))]
    forms = [
        Html(each.submit(NEW, client_id=client_id, client_type="t", patterns=pattern).text).form()
        for each, pattern in zip(two, patterns, strict=True)
    ]
    answers = all_at_once(
        [(each, form, NEW, {"step": "do"}) for each, form in zip(two, forms, strict=True)]
    )
    assert sorted(each.status_code for each in answers) == [200, 409]
    made = next(number for number, each in enumerate(answers) if each.status_code == 200)
    assert shown(page_lab, client_id)["hostnamePatterns"] == [patterns[made]]


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_of_two_policies_at_once_one_is_taken(
    page_lab: Lab, operators: list[PlainBrowser], round_: int
) -> None:
    client_id = f"ruled-{round_}-{secrets.token_hex(6)}"
    make(operators[0], client_id)
    path, two = f"/operator/clients/{client_id}/policy", operators[:2]
    patterns = [f"{number}.example.test" for number in range(len(two))]
    forms = [
        Html(each.submit(path, patterns=pattern).text).form()
        for each, pattern in zip(two, patterns, strict=True)
    ]
    answers = all_at_once(
        [(each, form, path, {"step": "do"}) for each, form in zip(two, forms, strict=True)]
    )
    assert sorted(each.status_code for each in answers) == [303, 409]
    taken = next(number for number, each in enumerate(answers) if each.status_code == 303)
    assert shown(page_lab, client_id)["hostnamePatterns"] == [patterns[taken]]
