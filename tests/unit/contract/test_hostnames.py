import idna
import pytest
from hypothesis import given, strategies as st

from gateway.contract import is_gateway_client_hostname
from gateway.contract.hostnames import hostname_fault, labels_fault

LONGEST = ".".join(["a" * 63, "a" * 63, "a" * 63, "a" * 61])


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("Relay.Example.COM", "relay.example.com"),
        ("relay.example.com.", "relay.example.com"),
        ("RELAY.EXAMPLE.COM.", "relay.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("ｅxample.com", "example.com"),  # noqa: RUF001
        ("example。com", "example.com"),
        (f"{LONGEST.upper()}.", LONGEST),
    ],
)
def test_refusal_names_the_canonical_spelling(spelled: str, canonical: str) -> None:
    fault = hostname_fault(spelled)
    assert fault is not None
    assert fault.startswith(f'must be spelled "{canonical}", not ')
    assert is_gateway_client_hostname(canonical)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("localhost", "fewer than 2 labels"),
        ("-", "begins or ends with a hyphen"),
        (f"{LONGEST}a", "more than 253 characters"),
        (f"{'a' * 64}.example", "more than 63 characters"),
        ("a..example", "an empty label"),
        ("-a.example", "begins or ends with a hyphen"),
        ("a_b.example", 'the character "_"'),
        ("10.0.0.1", "digits only"),
        ("xn--ls8h.example", "does not decode as IDNA 2008"),
        ("💩.example", "the character"),
        ("bücher", "the character"),
    ],
)
def test_refusal_says_what_is_wrong_when_nothing_canonical_is_meant(text: str, reason: str) -> None:
    fault = hostname_fault(text)
    assert fault is not None
    assert fault.startswith("must be a hostname, and ")
    assert reason in fault


def test_hostname_of_253_characters_is_accepted_and_of_254_refused() -> None:
    assert len(LONGEST) == 253
    assert is_gateway_client_hostname(LONGEST)
    assert not is_gateway_client_hostname(f"{LONGEST}a")


def test_hyphens_in_third_and_fourth_place_are_accepted_without_the_idna_prefix() -> None:
    assert is_gateway_client_hostname("ab--c.example")


@given(st.text(st.characters(min_codepoint=0x80, max_codepoint=0x24FF), min_size=1, max_size=12))
def test_a_label_is_accepted_exactly_when_its_u_label_is_valid(text: str) -> None:
    label = "xn--" + text.encode("punycode").decode("ascii")
    try:
        idna.check_label(text)
    except (idna.IDNAError, ValueError):
        is_valid = False
    else:
        is_valid = len(label) <= 63
    assert is_gateway_client_hostname(f"{label}.example") is is_valid


@given(st.text(max_size=300))
def test_a_named_spelling_is_always_an_accepted_one(text: str) -> None:
    fault = hostname_fault(text)
    if fault is not None and fault.startswith("must be spelled"):
        assert is_gateway_client_hostname(fault.split('"')[1])


@given(st.lists(st.text("axn1-", max_size=4) | st.just("xn--bcher-kva"), max_size=4).map(".".join))
def test_hostname_is_labels_each_of_which_may_be(text: str) -> None:
    labels = text.split(".")
    assert is_gateway_client_hostname(text) is (len(labels) > 1 and labels_fault(labels) is None)
