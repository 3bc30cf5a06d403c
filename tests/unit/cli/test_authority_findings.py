"""What `gateway check` makes of what a directory says of its authority."""

import pytest

from gateway.cli.authority_findings import Entry, judge_directory
from gateway.cli.finding import Finding, State
from gateway.config import AcmeSettings

DIRECTORY = "https://ca.example.test/dir"


def judge(
    meta: dict[str, object], *, profile: str | None = None, offers: bool = True
) -> list[Finding]:
    acme = AcmeSettings(name="ca", directory=DIRECTORY, profile=profile)
    return judge_directory(Entry("acme[3]", acme), meta, offers_renewal_info=offers)


def test_directory_that_says_nothing_of_itself_is_good() -> None:
    assert judge({}) == [
        Finding("acme ca", State.OK, f"{DIRECTORY} answers; it says when to renew (ARI).")
    ]


def test_everything_that_a_directory_offers_is_told() -> None:
    meta = {
        "profiles": {"classic": "as ever", "shortlived": "six days"},
        "externalAccountRequired": True,
        "termsOfService": "https://ca.example.test/terms",
        "website": "https://ca.example.test",
    }
    (finding,) = judge(meta, profile="shortlived", offers=False)
    assert finding.state is State.OK
    assert finding.finding == (
        f"{DIRECTORY} answers; it does not say when to renew (ARI);"
        " its profiles are classic, shortlived; it takes bound accounts only (EAB);"
        " its terms of service are at https://ca.example.test/terms."
    )


@pytest.mark.parametrize(
    ("profiles", "others"),
    [
        ({"profiles": {"classic": "", "tlsserver": ""}}, "only classic, tlsserver"),
        ({"profiles": {}}, "nor any other"),
        ({}, "nor any other"),
        ({"profiles": ["shortlived"]}, "nor any other"),
    ],
)
def test_profile_that_is_not_offered_is_a_fault(profiles: dict[str, object], others: str) -> None:
    _, finding = judge(profiles, profile="shortlived")
    assert finding == Finding(
        "acme ca",
        State.FAILED,
        f"It has no profile shortlived, {others}: it refuses every order.",
        "Correct acme[3].profile, or leave it out.",
    )


@pytest.mark.parametrize("required", [False, None, "true", 1])
def test_binding_is_wanted_only_where_the_directory_says_so_plainly(required: object) -> None:
    (finding,) = judge({"externalAccountRequired": required})
    assert "EAB" not in finding.finding


def test_words_of_an_authority_stay_on_one_line() -> None:
    meta = {"profiles": {"a\nb\x1b[31m": ""}, "termsOfService": "https://x/\r\n✓ acme: fine"}
    (finding,) = judge(meta)
    assert finding.finding.isprintable()
