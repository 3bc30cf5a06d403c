"""What `gateway budget` tells a person of a ledger."""

from gateway.certificates.budget import Limit
from gateway.certificates.ledger import HeldBy, Hold, LedgerState, LimitUse
from gateway.cli import budget

FREE_MS = 1_700_000_000_000
END = "2023-11-14 22:13:20 UTC"


def use(limit: Limit, used: int, subject: str = "", client_id: str = "") -> LimitUse:
    return LimitUse(limit, subject, client_id, used, 5, FREE_MS, FREE_MS)


STATE = LedgerState(
    uses=(
        use(Limit.HOSTNAME, 5, "full.example.org"),
        use(Limit.HOSTNAME, 1, "roomy.example.org"),
        use(Limit.FAILED_VALIDATIONS, 1, "roomy.example.org"),
        use(Limit.DOMAIN, 2, "example.org"),
        use(Limit.CLIENT_ORDERS, 3, client_id="client"),
        use(Limit.ORDERS, 3),
    ),
    holds=(),
)


def lines(state: LedgerState, *, clients: int = 1, with_rest: bool = False) -> list[str]:
    return list(budget._lines(state, clients=clients, with_rest=with_rest))


def test_account_comes_first_and_hostnames_only_when_used_up() -> None:
    assert lines(STATE) == [
        "of 5 new orders in 3 hours, 2 are free now",
        "example.org: of 5 certificates in 7 days, 3 are free now",
        "full.example.org: of 5 certificates in 7 days, none is free now;"
        f" the next one is at {END}",
        "and 1 hostname that has room left: --all",
    ]


def test_every_hostname_is_told_when_asked_for() -> None:
    told = lines(STATE, with_rest=True)
    assert "roomy.example.org: of 5 certificates in 7 days, 4 are free now" in told
    assert "roomy.example.org: of 5 failed validations in an hour, 4 are free now" in told
    assert not any("--all" in line for line in told)


def test_share_of_a_client_is_told_where_there_are_several() -> None:
    share = "client: of 5 new orders in 3 hours, this client's share, 2 are free now"
    assert share in lines(STATE, clients=2)
    assert share not in lines(STATE, clients=1, with_rest=True)


def test_holds_say_who_holds_what() -> None:
    holds = (
        Hold(HeldBy.SUSPENDED, FREE_MS, "it is away"),
        Hold(HeldBy.AUTHORITY, FREE_MS, "slow down"),
        Hold(HeldBy.AUTHORITY, FREE_MS, "too many", "example.org"),
    )
    assert lines(LedgerState((), holds)) == [
        f"left alone until {END}: it is away",
        f"every order: held by the authority until {END}: slow down",
        f"example.org: held by the authority until {END}: too many",
    ]


def test_empty_ledger_says_so() -> None:
    assert lines(LedgerState((), ())) == ["nothing is counted or held"]
