"""An ownership that is read without its model is the same; whatever else is left to the model."""

from typing import Any

from hypothesis import example, given, strategies as st

from gateway.contract import GetCertificateRequest, RequestInvalid, ownership_in, read_request
from tests.unit.contract.strategies import json_values

WORDS = st.sampled_from(["relay", "relay.example.com", "Relay.example.com", "a b", "", "x" * 200])


@given(
    st.dictionaries(st.sampled_from(["appId", "hostname", "more"]), WORDS | json_values)
    | json_values,
    st.booleans(),
)
@example({"appId": "relay", "hostname": "relay.example.com"}, False)
def test_it_is_what_the_model_reads(stated: Any, has_more: bool) -> None:
    parameters = {"ownership": stated, **({"more": 1} if has_more else {})}
    try:
        read = read_request(GetCertificateRequest, parameters).ownership
    except RequestInvalid:
        assert ownership_in(parameters) is None
        return
    quick = ownership_in(parameters)
    assert quick is not None
    assert (quick.app_id, quick.hostname) == (read.app_id, read.hostname)
