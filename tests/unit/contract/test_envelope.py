import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.contract import (
    MAX_BODY_BYTES,
    EnvelopeInvalid,
    Overloaded,
    RequestEnvelope,
    parse_request,
    render_response,
)
from gateway.contract.envelope import json_bytes
from tests.unit.contract.strategies import json_values

REQUEST = {
    "method": "getGatewayCapabilities",
    "request": {"apiToken": "gwc_a_b"},
    "response": None,
    "correlation": {"id": "c1", "phase": "request"},
}


def body_of(**changes: Any) -> bytes:
    return json.dumps({**REQUEST, **changes}).encode()


def refusal_of(body: bytes) -> EnvelopeInvalid:
    with pytest.raises(EnvelopeInvalid) as caught:
        parse_request(body)
    return caught.value


def nested(depth: int) -> bytes:
    """A body whose innermost list is `depth` brackets deep: two objects and lists."""
    lists = depth - 2
    return b'{"method":"m","request":{"a":' + b"[" * lists + b"]" * lists + b"}}"


# --- what is read -------------------------------------------------------------------------------


def test_call_is_read() -> None:
    assert parse_request(body_of()) == RequestEnvelope(
        "getGatewayCapabilities", {"apiToken": "gwc_a_b"}, "c1"
    )


@pytest.mark.parametrize("body", [b'{"method":"m"}', b'{"method":"m","request":null}'])
def test_request_and_correlation_may_be_absent(body: bytes) -> None:
    assert parse_request(body) == RequestEnvelope("m", {}, None)


def test_correlation_may_be_null_and_its_phase_is_not_judged() -> None:
    assert parse_request(body_of(correlation=None)).correlation_id is None
    assert parse_request(body_of(correlation={"id": "x", "phase": 7})).correlation_id == "x"


def test_other_keys_of_the_protocol_are_ignored() -> None:
    others = {key: {"a": [1]} for key in ("authInfo", "localData", "serverData", "error", "retry")}
    assert parse_request(body_of(**others, response=5)) == parse_request(body_of())


@pytest.mark.parametrize("method", ["", "##VirtualStream##", "a\nb", "méthode", "x" * 1000])
def test_odd_method_names_are_read_for_the_dispatcher_to_judge(method: str) -> None:
    assert parse_request(body_of(method=method)).method == method


def test_whole_and_paired_unicode_is_read() -> None:
    body = b'{"method":"m","request":{"a":"\\ud83d\\udca9","b":"\xf0\x9f\x92\xa9","c":"\\\\ud800"}}'
    assert parse_request(body).request == {"a": "💩", "b": "💩", "c": "\\ud800"}


def test_token_is_not_shown_with_the_envelope() -> None:
    assert "gwc_" not in repr(parse_request(body_of()))


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"[]",
        b"5",
        b"null",
        b'"text"',
        b"{}",
        b'{"method":"m"} {}',
        b"{'method':'m'}",
        b'{"method":"m",}',
        b'{"method":"m"}\x00',
        b'{"method":"a\nb"}',
        b'{"method":"m","request":{"a":01}}',
        b'\xef\xbb\xbf{"method":"m"}',
        '{"method":"m"}'.encode("utf-16"),
        b'{"method":"\xff"}',
        b'{"method":"\xc0\xaf"}',
        b'{"method":"\xed\xa0\x80"}',
        b'{"method":"\\ud800"}',
        b'{"method":"m","request":{"a":["\\udfff"]}}',
        b'{"method":"m","request":{"\\uDBFF":1}}',
        b'{"method":"m","request":{"a":"\\ud800\\ud800"}}',
        b'{"method":"m","request":{"a":NaN}}',
        b'{"method":"m","request":{"a":Infinity}}',
        b'{"method":"m","request":{"a":-Infinity}}',
        b'{"method":"m","method":"m"}',
        b'{"method":"m","\\u006dethod":"m"}',
        b'{"method":"m","request":{"a":[{"b":1,"c":2,"b":1}]}}',
    ],
)
def test_body_that_is_no_call_is_refused(body: bytes) -> None:
    refusal = refusal_of(body)
    assert refusal.http_status == 400
    assert refusal.data() == {"code": "envelope-invalid"}


@pytest.mark.parametrize(
    ("digits", "number"),
    [
        pytest.param("1e999", math.inf, id="overflow"),
        pytest.param("1" * 400, int("1" * 400), id="longest int"),
        pytest.param("1" * 401, math.inf, id="too long an int"),
        pytest.param("-" + "9" * 60_000, -math.inf, id="huge int"),
        pytest.param("0." + "9" * 60_000, 1.0, id="huge float"),
    ],
)
def test_number_too_large_for_any_field_is_read_and_left_to_the_fields(
    digits: str, number: float
) -> None:
    body = f'{{"method":"m","request":{{"a":{digits}}}}}'.encode()
    assert parse_request(body).request == {"a": number}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": None}, "method must be text, not null."),
        ({"method": 5}, "method must be text, not the number 5."),
        ({"method": ["m"]}, "method must be text, not a list."),
        ({"request": []}, "request must be an object, not a list."),
        ({"request": "gwc_a_s3cret"}, 'request must be an object, not "gwc_(hidden)".'),
        ({"request": False}, "request must be an object, not false."),
        ({"correlation": "c1"}, 'correlation must be an object, not "c1".'),
        ({"correlation": {}}, "correlation.id must be text, not null."),
        ({"correlation": {"id": 5}}, "correlation.id must be text, not the number 5."),
    ],
)
def test_wrong_types_in_the_envelope_are_named(changes: dict[str, Any], sentence: str) -> None:
    assert refusal_of(body_of(**changes)).text == sentence


def test_repeated_key_is_named_without_its_secret() -> None:
    body = b'{"method":"m","request":{"gwc_a_s3cret":1,"gwc_a_s3cret":2}}'
    assert refusal_of(body).text == 'The body has the key "gwc_(hidden)" twice in one object.'


def test_body_of_64_kib_is_read_and_one_byte_more_is_too_large() -> None:
    empty = body_of(request={"a": ""})
    body = body_of(request={"a": "x" * (MAX_BODY_BYTES - len(empty))})
    assert len(body) == MAX_BODY_BYTES
    assert parse_request(body).method == "getGatewayCapabilities"
    assert refusal_of(body + b" ").http_status == 413


def test_depth_of_32_is_read_and_of_33_is_refused() -> None:
    assert parse_request(nested(32)).method == "m"
    assert refusal_of(nested(33)).text == "The body is nested deeper than 32."


def test_brackets_inside_texts_are_no_depth() -> None:
    assert parse_request(body_of(request={"a": "[" * 1000, '\\"[{': "\\" * 9 + '"{' * 99}))
    assert parse_request(body_of(request={"a": [[] for _ in range(1000)]}))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * MAX_BODY_BYTES,
        b'{"a":' * 13_000,
        b'"' + b'\\"' * 32_000 + b"[" * 100,
        b"[" * 40 + b'"' + b"\\" * 60_000,
        b"]" * 30_000 + b"[" * 30_000,
        b'{"method":"m","request":' + b'{"":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
    ],
    ids=["lists", "objects", "unended text", "backslashes", "closed first", "balanced"],
)
def test_hostile_nesting_is_refused_without_recursion(body: bytes) -> None:
    refusal_of(body)


@given(st.integers(0, len(body_of()) - 1))
def test_truncated_body_is_refused(length: int) -> None:
    refusal_of(body_of()[:length])


@given(
    st.one_of(
        st.binary(max_size=200),
        st.text('{}[]",:\\ud8 0eE-.nulltrue', max_size=200).map(str.encode),
        st.tuples(st.integers(0, 80), st.binary(max_size=3)).map(
            lambda cut: body_of()[: cut[0]] + cut[1] + body_of()[cut[0] + 1 :]
        ),
    )
)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        envelope = parse_request(body)
    except EnvelopeInvalid as refusal:
        assert refusal.http_status == 400  # noqa: PT017
    else:
        assert type(envelope.method) is str
        assert type(envelope.request) is dict


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = 1 if isinstance(value, dict | list) else 0
    return own + max(map(depth_of, inner), default=0)


@given(json_values, st.integers(20, 36))
def test_nesting_is_measured_as_a_reader_counts_it(value: Any, wrapped: int) -> None:
    # The text of `value` is put in as well: its brackets must not count.
    try:
        text = json.dumps(value, allow_nan=False)
        text.encode()
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return
    request: Any = [value, text]
    for _ in range(wrapped):
        request = [request]
    envelope = {"method": "m", "request": {"a": request}}
    body = json.dumps(envelope).encode()
    if depth_of(envelope) > 32:
        assert refusal_of(body).text == "The body is nested deeper than 32."
    else:
        assert parse_request(body).request == {"a": request}


texts = st.text(st.characters(exclude_categories=()))
plain_values = st.none() | st.booleans() | st.integers() | texts
"""All that an answer is made of: no answer has a fraction."""


# --- what is answered ---------------------------------------------------------------------------


def test_answer_has_exactly_the_keys_of_the_protocol() -> None:
    answer = json.loads(render_response("m", "c1", {"status": "released"}, None))
    assert answer == {
        "method": "m",
        "request": None,
        "response": {"status": "released"},
        "correlation": {"id": "c1", "phase": "response"},
    }


def test_failed_answer_has_a_null_response_and_the_error() -> None:
    answer = json.loads(render_response("m", None, None, Overloaded(250)))
    assert answer == {
        "method": "m",
        "request": None,
        "response": None,
        "correlation": None,
        "error": {
            "text": "The gateway takes no more calls right now.",
            "data": {"code": "overloaded", "retryAfterMs": 250},
        },
    }


def test_answer_to_an_unreadable_body_names_no_method() -> None:
    answer = json.loads(render_response(None, None, None, EnvelopeInvalid("No.")))
    assert (answer["method"], answer["correlation"]) == (None, None)


def test_answer_is_utf8_whatever_its_texts_hold() -> None:
    body = render_response("é", "c1", {"message": "half \ud800"}, None)
    assert json.loads(body.decode("utf-8"))["response"] == {"message": "half ?"}


@given(st.recursive(plain_values, lambda some: st.lists(some) | st.dictionaries(texts, some)))
def test_json_is_written_as_the_standard_library_writes_it(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert json_bytes(value) == text.encode("utf-8", "replace")
