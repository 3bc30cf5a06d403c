"""How the kernel's errors are sorted: nobody took the message, or there is no way at all."""

import errno

import pytest

from gateway.dns.transport import NotTaken, NoWay, why_not_taken


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ECONNREFUSED, NotTaken, "connection refused"),
        (errno.EHOSTUNREACH, NotTaken, "EHOSTUNREACH"),
        (errno.ENETUNREACH, NoWay, "ENETUNREACH"),
        (errno.EADDRNOTAVAIL, NoWay, "EADDRNOTAVAIL"),
        (errno.EAFNOSUPPORT, NoWay, "EAFNOSUPPORT"),
    ],
)
def test_errors_say_whether_there_is_a_way(number: int, kind: type[NotTaken], words: str) -> None:
    fault = why_not_taken(OSError(number, "text"))
    assert type(fault) is kind
    assert words in str(fault)


def test_error_without_a_number_is_named_by_its_class() -> None:
    assert "ConnectionError" in str(why_not_taken(ConnectionError("text")))
