import pytest

from gateway.contract.identifiers import app_id_fault, client_id_fault, client_type_fault


@pytest.mark.parametrize("text", ["a", "~!", "x" * 128, "cluster-relay:clusterexample"])
def test_client_id_follows_the_rule_of_an_app_id(text: str) -> None:
    assert app_id_fault(text) is None
    assert client_id_fault(text) is None


@pytest.mark.parametrize("text", ["", "a b", "x" * 129, "ä", "a\n"])
def test_app_id_and_client_id_are_refused_outside_visible_ascii(text: str) -> None:
    expected = "must be 1 to 128 printable ASCII characters without a space, not "
    assert (app_id_fault(text) or "").startswith(expected)
    assert (client_id_fault(text) or "").startswith(expected)


def test_app_id_of_another_type_is_described() -> None:
    assert app_id_fault(7) == (
        "must be text of 1 to 128 printable ASCII characters without a space, not the number 7"
    )


@pytest.mark.parametrize("text", ["relay", "Relay_2.1-x", "x" * 64])
def test_client_type_is_accepted(text: str) -> None:
    assert client_type_fault(text) is None


@pytest.mark.parametrize("value", ["", "a b", "a:b", "x" * 65, "é", "a\n", None, 1])
def test_client_type_is_refused(value: object) -> None:
    assert client_type_fault(value) is not None
