"""`[acme.budget]`: its defaults, its bounds, and that the budget takes what it says."""

from dataclasses import asdict

import pytest

from gateway.certificates.budget import Budget
from tests.unit.config.conftest import ACME, MINIMAL, Faults, Load

BUDGET = MINIMAL + ACME + "[acme.budget]\n"


def test_defaults_are_those_of_the_budget_itself(load: Load) -> None:
    (acme,) = load(MINIMAL + ACME).acme
    assert acme.budget.model_dump() == asdict(Budget())


def test_every_key_reaches_the_budget(load: Load) -> None:
    (acme,) = load(
        BUDGET
        + """
        orders_per_3_hours = 1
        certificates_per_domain_per_week = 2
        certificates_per_hostname_per_week = 0
        failed_validations_per_hour = 4
        renewals_are_counted = true
        reserved_for_renewals = 0.5
        client_share = 1
        """
    ).acme
    assert Budget(**acme.budget.model_dump()) == Budget(1, 2, 0, 4, True, 0.5, 1)


def test_variable_sets_a_figure_of_one_authority(load: Load) -> None:
    environ = {"GATEWAY_ACME__0__BUDGET__ORDERS_PER_3_HOURS": "1500"}
    (acme,) = load(MINIMAL + ACME, environ).acme
    assert acme.budget.orders_per_3_hours == 1500


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("orders_per_3_hours = -1", "must be greater than or equal to 0, not -1"),
        ("orders_per_3_hours = 1.5", "must be a whole number, not 1.5"),
        ("orders_per_3_hours = true", "must be a number, not true"),
        ("failed_validations_per_hour = 1000001", "must be less than or equal to 1000000"),
        ("reserved_for_renewals = 1", "must be less than or equal to 0.9, not 1"),
        ("client_share = 0", "must be greater than 0, not 0"),
        ("client_share = 1.5", "must be less than or equal to 1, not 1.5"),
        ('renewals_are_counted = "maybe"', 'must be true or false, not "maybe"'),
    ],
)
def test_figure_out_of_bounds_is_a_fault(faults: Faults, line: str, fault: str) -> None:
    (told,) = faults(BUDGET + line)
    assert told.startswith(f"acme[0].budget.{line.split()[0]}: {fault}")


def test_unknown_key_is_a_fault(faults: Faults) -> None:
    (told,) = faults(BUDGET + "orders_per_hour = 1")
    assert told.startswith("acme[0].budget.orders_per_hour: is not a key of the configuration")
