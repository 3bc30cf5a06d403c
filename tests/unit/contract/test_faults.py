import pytest

from gateway.contract.faults import Fault, described, joined, path_text, plain, quoted


@pytest.mark.parametrize(
    ("value", "noun"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (5, "the number 5"),
        (-5.5, "the number -5.5"),
        (float("inf"), "the number inf"),
        (10**20 - 1, "the number 99999999999999999999"),
        (10**20, "a number of more than 20 digits"),
        pytest.param(-(10**6000), "a number of more than 20 digits", id="thousands of digits"),
        ([1], "a list"),
        ((1,), "a list"),
        ({}, "an object"),
        ("text", '"text"'),
        (b"text", "a value that JSON does not have"),
    ],
)
def test_value_is_described_as_json_knows_it(value: object, noun: str) -> None:
    assert described(value) == noun


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ('a"b\\c\nd', r'"a\"b\\c\nd"'),
        ("\x00\x7fé💩\ud800", r'"\u{0}\u{7f}\u{e9}\u{1f4a9}\u{d800}"'),
        ("x" * 64, f'"{"x" * 64}"'),
        ("x" * 65, f'"{"x" * 64}"...'),
    ],
)
def test_text_is_shown_bounded_and_escaped(text: str, shown: str) -> None:
    assert quoted(text) == shown


@pytest.mark.parametrize("secret", ["gwc_id_s3cret", "gwa_s3cret", "GWC_s3cret"])
def test_token_is_never_shown_wherever_it_stands(secret: str) -> None:
    for text in (secret, f"Bearer {secret}", f"{'x' * 55} {secret}", f"x{secret}"):
        assert "s3cret" not in quoted(text)
        assert "s3cret" not in path_text([text])
    assert quoted(secret).endswith('_(hidden)"')


def test_private_key_is_never_shown() -> None:
    assert quoted("-----BEGIN PRIVATE KEY-----\nMIG") == '"-----BEGIN (hidden)"'


@pytest.mark.parametrize(
    ("parent", "path", "whole"),
    [("a", "b", "a.b"), ("a", "[0]", "a[0]"), ("", "b", "b"), ("a", "", "a"), ("", "", "")],
)
def test_paths_are_joined(parent: str, path: str, whole: str) -> None:
    assert joined(parent, path) == whole
    assert str(Fault(path, "is missing").under(parent)) == f"{whole} is missing"


def test_path_text_names_keys_and_positions() -> None:
    assert path_text(["spec", "hostnamePatterns", 3]) == "spec.hostnamePatterns[3]"
    assert path_text(["a-b", 0, "c"]) == '["a-b"][0].c'
    assert path_text([]) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("published, as it was", "published, as it was"),
        ("zwölf", "zwölf"),
        ("", ""),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 40 + "..."),
        ("a\tb\n", "a\\u{9}b\\n"),
        ("token gwc_abc", "token gwc_(hidden)"),
        ("GWA_abc", "GWA_(hidden)"),
        ("-----begin PRIVATE KEY", "-----begin (hidden)"),
    ],
)
def test_somebody_elses_sentence_is_left_as_it_is_unless_it_may_do_harm(
    text: str, shown: str
) -> None:
    assert plain(text, 40) == shown
