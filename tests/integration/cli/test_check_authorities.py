"""`gateway check` looks at the certificate authorities and at our accounts there."""

import base64
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.running import check, make, make_client, spoil
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Hang, Mood, Refuse, Rewrite
from tests.lab.acme_proxy import AcmeProxy
from tests.lab.bind import BindPair
from tests.lab.gateway import write_gateway_config
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess

FIRST = {"GATEWAY_ACME__0__NAME": "first"}


def nowhere(index: int, name: str) -> dict[str, str]:
    """One more authority, which is not there."""
    return {
        f"GATEWAY_ACME__{index}__NAME": name,
        f"GATEWAY_ACME__{index}__DIRECTORY": f"https://127.0.0.1:{free_port()}/dir",
    }


def second(proxy: AcmeProxy) -> dict[str, str]:
    """The proxy as another authority behind the one of the configuration."""
    return {
        **FIRST,
        "GATEWAY_ACME__1__NAME": "second",
        "GATEWAY_ACME__1__DIRECTORY": proxy.directory_url,
        "GATEWAY_ACME__1__CA_BUNDLE": str(proxy.ca_file),
    }


@pytest.fixture
def proxy(tmp_path: Path, pebble: PebbleProcess) -> Iterator[AcmeProxy]:
    with AcmeProxy(make(tmp_path / "proxy"), pebble) as proxy:
        yield proxy


def with_profiles(meta: dict[str, object]) -> Mood:
    def change(directory: dict[str, dict[str, object]]) -> None:
        directory["meta"].update(meta)

    return Rewrite("a directory with other meta", change)


def test_check_may_be_repeated_with_the_same_account(config_file: Path) -> None:
    part = "acme account first"
    first, again = check(config_file, FIRST)[part], check(config_file, FIRST)[part]
    assert "The authority now has the account https://" in first["finding"]
    assert "The authority has the account https://" in again["finding"]
    assert again["finding"].split()[-1] == first["finding"].split()[-1]


def test_check_finds_each_authority_by_its_name(config_file: Path, proxy: AcmeProxy) -> None:
    findings = check(config_file, second(proxy))
    for name in ("first", "second"):
        assert findings[f"acme {name}"]["state"] == "ok"
        assert findings[f"acme account {name}"]["state"] == "ok"
    assert proxy.directory_url in findings["acme second"]["finding"]


def test_check_finds_an_authority_that_is_not_there(config_file: Path) -> None:
    findings = check(config_file, FIRST | nowhere(0, "first"))
    assert findings["acme first"]["state"] == "failed"
    assert "acme account first" not in findings


def test_check_warns_of_an_authority_that_is_not_there_beside_another(config_file: Path) -> None:
    findings = check(config_file, FIRST | nowhere(1, "second"))
    assert findings["acme first"]["state"] == "ok"
    assert findings["acme second"]["state"] == "warning"
    assert "acme[1].directory" in findings["acme second"]["remedy"]
    assert "acme account second" not in findings


def test_check_finds_that_no_authority_is_there(config_file: Path) -> None:
    findings = check(config_file, nowhere(0, "first") | nowhere(1, "second"))
    assert findings["acme first"]["state"] == findings["acme second"]["state"] == "failed"


@pytest.mark.parametrize("operation", [Operation.DIRECTORY, Operation.NEW_ACCOUNT])
def test_check_warns_of_an_authority_that_hangs_beside_another(
    config_file: Path, proxy: AcmeProxy, operation: Operation
) -> None:
    make_client(config_file)
    part = "acme second" if operation is Operation.DIRECTORY else "acme account second"
    with proxy.on(operation, Hang(after_acting=False), times=None):
        findings = check(config_file, second(proxy))
    assert findings[part]["state"] == "warning"
    assert [name for name in findings if findings[name]["state"] != "ok"] == [part]
    assert "no answer within 8 s" in findings[part]["finding"]
    assert findings["acme account first"]["state"] == "ok"
    assert findings["redis"]["state"] == "ok"


def test_check_warns_of_an_authority_whose_accounts_are_out_of_order(
    config_file: Path, proxy: AcmeProxy
) -> None:
    with proxy.on(Operation.NEW_ACCOUNT, Refuse(503, "serverInternal"), times=None):
        findings = check(config_file, second(proxy))
    assert findings["acme second"]["state"] == "ok"
    assert findings["acme account second"]["state"] == "warning"


def test_check_finds_a_directory_that_is_none_also_beside_another(
    config_file: Path, pebble: PebbleProcess
) -> None:
    environ = {**FIRST, **nowhere(1, "second")}
    environ["GATEWAY_ACME__1__DIRECTORY"] = f"{pebble.directory_url}/elsewhere"
    environ["GATEWAY_ACME__1__CA_BUNDLE"] = str(pebble.ca_file)
    assert check(config_file, environ)["acme second"]["state"] == "failed"


def test_check_finds_an_authority_whose_certificate_is_not_trusted(config_file: Path) -> None:
    spoil(config_file, "ca_bundle = .*", "")
    finding = check(config_file, FIRST)["acme first"]
    assert finding["state"] == "failed"
    assert "acme[0].ca_bundle" in finding["remedy"]


def test_check_finds_a_profile_that_the_authority_does_not_have(
    config_file: Path, proxy: AcmeProxy
) -> None:
    profiles = {"profiles": {"classic": "as ever", "tlsserver": "leaner"}}
    environ = {**second(proxy), "GATEWAY_ACME__1__PROFILE": "shortlived"}
    with proxy.on(Operation.DIRECTORY, with_profiles(profiles), times=None):
        finding = check(config_file, environ)["acme second"]
        assert finding["state"] == "failed"
        assert "no profile shortlived, only classic, tlsserver" in finding["finding"]
        assert "acme[1].profile" in finding["remedy"]
        environ["GATEWAY_ACME__1__PROFILE"] = "tlsserver"
        assert check(config_file, environ)["acme second"]["state"] == "ok"


def test_check_tells_whether_the_authority_says_when_to_renew(
    config_file: Path, proxy: AcmeProxy
) -> None:
    proxy.offer_renewal_info()
    findings = check(config_file, second(proxy))
    assert "it does not say when to renew (ARI)" in findings["acme first"]["finding"]
    assert "it says when to renew (ARI)" in findings["acme second"]["finding"]


@pytest.fixture
def binding_pebble(tmp_path: Path, bind: BindPair, hmac_key: str) -> Iterator[PebbleProcess]:
    settings = {
        "externalAccountBindingRequired": True,
        "externalAccountMACKeys": {"kid": hmac_key},
    }
    own_pebble = start_pebble(make(tmp_path / "pebble"), bind.primary, settings=settings)
    yield own_pebble
    own_pebble.stop()


@pytest.fixture
def hmac_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(48)).decode()


def test_check_finds_an_account_that_is_not_bound(
    tmp_path: Path,
    bind: BindPair,
    own_redis: RedisProcess,
    binding_pebble: PebbleProcess,
    hmac_key: str,
) -> None:
    file = write_gateway_config(
        tmp_path / "gateway", bind, own_redis.url, binding_pebble
    ).config_file
    finding = check(file, FIRST)["acme account first"]
    assert finding["state"] == "failed"
    assert "none is given" in finding["finding"]
    assert "acme[0].eab" in finding["remedy"]
    binding = {**FIRST, "GATEWAY_ACME__0__EAB__KEY_ID": "kid"}
    other = base64.urlsafe_b64encode(secrets.token_bytes(48)).decode()
    wrong = check(file, {**binding, "GATEWAY_ACME__0__EAB__HMAC_KEY": other})["acme account first"]
    assert wrong["state"] == "failed"
    assert "acme[0].eab" in wrong["remedy"]
    right = check(file, {**binding, "GATEWAY_ACME__0__EAB__HMAC_KEY": hmac_key})
    assert right["acme account first"]["state"] == "ok"
    # Bound once, the account is known without the binding.
    assert check(file, FIRST)["acme account first"]["state"] == "ok"


def test_check_registers_again_where_the_authority_has_forgotten_the_account(
    tmp_path: Path, bind: BindPair, own_redis: RedisProcess
) -> None:
    own_pebble = start_pebble(make(tmp_path / "pebble"), bind.primary)
    try:
        written = write_gateway_config(tmp_path / "gateway", bind, own_redis.url, own_pebble)
        check(written.config_file)
        own_pebble.stop()
        own_pebble.start()
        finding = check(written.config_file, FIRST)["acme account first"]
    finally:
        own_pebble.stop()
    assert finding["state"] == "ok"
    assert "The authority now has the account https://" in finding["finding"]


@pytest.mark.parametrize(
    "mood",
    [
        Rewrite("a deactivated account", lambda account: account.update(status="deactivated")),
        Refuse(401, "unauthorized"),
    ],
)
def test_check_finds_an_account_that_is_not_valid_any_more(
    config_file: Path, proxy: AcmeProxy, mood: Mood
) -> None:
    check(config_file, second(proxy))
    with proxy.on(Operation.ACCOUNT, mood, times=None):
        finding = check(config_file, second(proxy))["acme account second"]
    assert finding["state"] == "failed"
    assert finding["remedy"] == "gateway accounts replace second"


def test_check_finds_an_account_key_of_another_keyring(config_file: Path) -> None:
    spoil(config_file, 'url = ".*"', 'url = "embedded"')
    check(config_file)
    keyring = config_file.parent / "keyring"
    keyring.write_text("other " + keyring.read_text().split()[1][::-1].replace("=", "") + "=\n")
    finding = check(config_file, FIRST)["acme account first"]
    assert finding["state"] == "failed"
    assert "another keyring" in finding["finding"]
