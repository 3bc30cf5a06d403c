"""Which URLs and CA files a client takes, before it connects to anything."""

import os
from pathlib import Path

import pytest

from gateway.client import AsyncGatewayClient
from tests.lab.certificates import LabAuthority

TOKEN = "gwc_c7f3_kJ0xExample"
HERE = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://gateway.example.com", "https://gateway.example.com/typedrequest"),
        ("https://gateway.example.com/", "https://gateway.example.com/typedrequest"),
        ("https://gateway.example.com:8443", "https://gateway.example.com:8443/typedrequest"),
        ("https://gateway.example.com/typedrequest", "https://gateway.example.com/typedrequest"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443/typedrequest"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/typedrequest"),
        ("http://[::1]:8080", "http://[::1]:8080/typedrequest"),
        ("http://localhost", "http://localhost/typedrequest"),
    ],
)
async def test_url_is_taken_with_and_without_the_path(url: str, endpoint: str) -> None:
    async with AsyncGatewayClient(url, TOKEN) as client:
        assert repr(client) == f"AsyncGatewayClient({endpoint!r})"


@pytest.mark.parametrize(
    "url",
    [
        *("http://gateway.example.com", "http://192.0.2.1:8080", "http://[2001:db8::1]"),
        *("http://localhost.example.com", "http://127.0.0.1.example.com", "http://0.0.0.0"),
    ],
)
def test_plain_http_to_another_machine_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="would send the token unencrypted to another machine"):
        AsyncGatewayClient(url, TOKEN)


async def test_plain_http_to_another_machine_may_be_allowed() -> None:
    async with AsyncGatewayClient("http://192.0.2.1", TOKEN, allow_plain_http=True) as client:
        assert "http://192.0.2.1/" in repr(client)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "must begin with https://"),
        ("gateway.example.com", "must begin with https://"),
        ("/typedrequest", "must begin with https://"),
        ("ftp://gateway.example.com", "must begin with https://"),
        ("https://", "must begin with https:// and name a host"),
        ("https://gateway.example.com:99999", "must have a port from 1 to 65535"),
        ("https://gateway.example.com:0", "must have a port from 1 to 65535"),
        ("https://gateway.example.com\n", "is not a URL"),
        ("https://gateway.example.com/other", "must have no path but /typedrequest"),
        ("https://gateway.example.com/typedrequest/", "must have no path but /typedrequest"),
        ("https://gateway.example.com?a=b", "no user, no query and no fragment"),
        ("https://gateway.example.com#a", "no user, no query and no fragment"),
        ("https://user:hidden@gateway.example.com", "no user, no query and no fragment"),
        ("https://user:hidden@gateway.example.com:99999", "no user, no query and no fragment"),
        ("https://user:hidden@gateway.example.com:port", "no user, no query and no fragment"),
        ("user:hidden@gateway.example.com", "no user, no query and no fragment"),
    ],
)
def test_what_is_no_gateways_url_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        AsyncGatewayClient(url, TOKEN)
    assert "hidden" not in str(refused.value)


def test_value_that_is_no_text_is_no_url() -> None:
    with pytest.raises(ValueError, match="the number 5 is not a URL"):
        AsyncGatewayClient(5, TOKEN)  # type: ignore[arg-type]


async def test_ca_file_of_pem_is_taken(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text(LabAuthority().root_pem)
    async with AsyncGatewayClient("https://gateway.example.com", TOKEN, ca_file=ca_file):
        pass


@pytest.mark.parametrize("content", [b"", b"\0garbage", b"-----BEGIN CERTIFICATE-----\nMIIB\n"])
def test_ca_file_without_a_certificate_is_refused(tmp_path: Path, content: bytes) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(content)
    with pytest.raises(ValueError, match=f"The CA file {ca_file} cannot be used: "):
        AsyncGatewayClient("https://gateway.example.com", TOKEN, ca_file=ca_file)


def test_ca_file_that_is_not_there_is_refused_with_its_path(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    missing = os.strerror(2)
    with pytest.raises(ValueError, match=f"The CA file {ca_file} cannot be used: {missing}"):
        AsyncGatewayClient("https://gateway.example.com", TOKEN, ca_file=str(ca_file))


def test_ca_file_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="CA file must have a name"):
        AsyncGatewayClient("https://gateway.example.com", TOKEN, ca_file="")


@pytest.mark.parametrize("deadline", [0, -1.0, float("nan")])
def test_deadline_that_is_none_is_refused(deadline: float) -> None:
    with pytest.raises(ValueError, match=f"must be more than 0 seconds, not {deadline}"):
        AsyncGatewayClient("https://gateway.example.com", TOKEN, deadline=deadline)


@pytest.mark.parametrize(
    "proxy",
    [
        *("socks5://user:hidden@192.0.2.1:1080", "gopher://192.0.2.1"),
        *("http://user:hidden@127.0.0.1:99999", "http://127.0.0.1:0", "127.0.0.1:port"),
        *("http://[", "http://", "http://xn--/", "two words", "http://a\x01b"),
    ],
)
def test_proxy_that_cannot_be_used_is_refused_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ValueError, match=r"The proxy in \$ALL_PROXY cannot be used") as refused:
        AsyncGatewayClient("https://gateway.example.com", TOKEN)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "proxy",
    [
        "http://192.0.2.1:3128",
        "proxy",
        "https://user:word@proxy.example:8443/",
        "http://[::1]:3128",
    ],
)
async def test_proxy_that_can_be_used_is_taken(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    async with AsyncGatewayClient("https://gateway.example.com", TOKEN):
        pass


async def test_proxy_that_is_not_used_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://[")
    async with AsyncGatewayClient(HERE, TOKEN):
        pass
    monkeypatch.setenv("NO_PROXY", "*")
    async with AsyncGatewayClient("https://gateway.example.com", TOKEN):
        pass


def test_key_log_that_cannot_be_written_is_refused_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys"))
    with pytest.raises(ValueError, match=r"The file in \$SSLKEYLOGFILE cannot be written: No such"):
        AsyncGatewayClient("https://gateway.example.com", TOKEN)


def test_name_of_a_host_that_is_none_is_no_url() -> None:
    with pytest.raises(ValueError, match="is not a URL"):
        AsyncGatewayClient("https://xn--/", TOKEN)


@pytest.mark.parametrize("given", [b"gwc_bytes", None, 5])
async def test_token_function_that_gives_no_text_is_told(given: object) -> None:
    async with AsyncGatewayClient(HERE, lambda: given) as client:  # type: ignore[arg-type,return-value]
        with pytest.raises(TypeError, match=f"must give text, not {type(given).__name__}"):
            await client.get_context()


def test_token_function_that_is_a_coroutine_is_refused() -> None:
    async def token() -> str:
        return TOKEN

    with pytest.raises(TypeError, match="token must be a plain function"):
        AsyncGatewayClient(HERE, token)  # type: ignore[arg-type]


@pytest.mark.parametrize("token", ["", " ", "two words", "gwc_\xfc"])
def test_token_that_can_be_none_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="one word"):
        AsyncGatewayClient(HERE, token)


def test_token_that_is_missing_is_refused() -> None:
    with pytest.raises(TypeError, match="not NoneType"):
        AsyncGatewayClient(HERE, None)  # type: ignore[arg-type]


async def test_callback_that_is_a_coroutine_is_refused() -> None:
    async def tell(_: object) -> None: ...

    async with AsyncGatewayClient(HERE, TOKEN) as client:
        with pytest.raises(TypeError, match="on_progress must be a plain function"):
            await client.wait_for_certificate(
                {"appId": "a", "hostname": "a.example"},
                on_progress=tell,  # type: ignore[arg-type]
            )
    with pytest.raises(TypeError, match="on_repeat must be a plain function"):
        AsyncGatewayClient(HERE, TOKEN, on_repeat=tell)  # type: ignore[arg-type]


def test_token_in_the_place_of_the_url_is_not_shown() -> None:
    with pytest.raises(ValueError, match="must begin with https://") as refused:
        AsyncGatewayClient(TOKEN, "https://gateway.example.com")
    assert TOKEN not in str(refused.value)


async def test_token_is_never_shown() -> None:
    async with AsyncGatewayClient("https://gateway.example.com", TOKEN) as client:
        assert TOKEN not in repr(client)
