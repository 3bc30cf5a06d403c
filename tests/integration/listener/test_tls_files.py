"""TLS from files: what is presented, replaced while connections come, and who gets in."""

import shutil
import ssl
import threading
import warnings
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from gateway.http.listener.contexts import substitute
from tests.integration.cli.running import check, run
from tests.integration.listener.conftest import TlsFiles
from tests.integration.listener.serving import LIMIT_SECONDS, presented
from tests.integration.npm.calls import new_caller
from tests.integration.service.calling import CONTEXT, envelope
from tests.lab.gateway import GatewayConfig, GatewayProcess, running_gateway
from tests.lab.npm_client import NpmClient
from tests.lab.ports import free_port
from tests.lab.process import wait_until


def gateway_with(
    config: GatewayConfig, environ: dict[str, str], tls: ssl.SSLContext
) -> AbstractContextManager[GatewayProcess]:
    return running_gateway(config, "tls", port=free_port(), environ=environ, tls=tls)


def der(file: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(file.read_text())


def readiness(gateway: GatewayProcess, context: ssl.SSLContext) -> httpx.Response:
    return httpx.get(f"{gateway.base_url}/readyz", verify=context, trust_env=False)


def test_renewed_files_are_taken_without_a_failed_handshake(
    listener_config: GatewayConfig, files: TlsFiles, other_files: TlsFiles
) -> None:
    both = ssl.create_default_context(cafile=files.ca)
    both.load_verify_locations(other_files.ca)
    new = der(other_files.certificate)
    with gateway_with(listener_config, files.environ, files.client()) as gateway:
        assert presented(gateway.port, both) == der(files.certificate)
        failures: list[str] = []
        done = threading.Event()

        def connect() -> None:
            while not done.is_set():
                try:
                    presented(gateway.port, both)
                except OSError as error:
                    failures.append(str(error))

        threads = [threading.Thread(target=connect) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            files.replace(other_files)
            wait_until(lambda: presented(gateway.port, both) == new, "the new certificate")
        finally:
            done.set()
            for thread in threads:
                thread.join(LIMIT_SECONDS)
        assert failures == []
        with pytest.raises(ssl.SSLCertVerificationError):
            presented(gateway.port, files.client())


def test_pair_that_does_not_fit_is_told_and_the_former_goes_on(
    listener_config: GatewayConfig, files: TlsFiles, other_files: TlsFiles
) -> None:
    former = der(files.certificate)
    with gateway_with(listener_config, files.environ, files.client()) as gateway:
        shutil.copy(other_files.certificate, files.certificate)
        wait_until(
            lambda: "detail" in readiness(gateway, files.client()).json()["parts"]["tls"],
            "readiness tells of the pair",
        )
        page = readiness(gateway, files.client())
        detail = "The new certificate cannot be used: the key is not the certificate's."
        assert (page.status_code, page.json()["status"]) == (200, "degraded")
        assert page.json()["parts"]["tls"]["detail"] == detail
        assert presented(gateway.port, files.client()) == former
        shutil.copy(other_files.key, files.key)
        new = der(other_files.certificate)
        either = files.client()
        either.load_verify_locations(other_files.ca)
        wait_until(lambda: presented(gateway.port, either) == new, "the other pair is taken")
        wait_until(
            lambda: readiness(gateway, other_files.client()).json()["status"] == "ready",
            "readiness is well again",
        )


def test_older_tls_is_refused(listener_config: GatewayConfig, files: TlsFiles) -> None:
    old = files.client()
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1_1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with gateway_with(listener_config, files.environ, files.client()) as gateway:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            presented(gateway.port, old)
        recent = files.client()
        recent.maximum_version = ssl.TLSVersion.TLSv1_2
        assert presented(gateway.port, recent)


def test_only_clients_of_the_authority_get_in_and_need_their_token_still(
    listener_config: GatewayConfig, files: TlsFiles, other_files: TlsFiles
) -> None:
    environ = {**files.environ, "GATEWAY_HTTP__CLIENT_CA_FILE": str(other_files.ca)}
    anybody = files.client()
    known = files.client()
    known.load_cert_chain(other_files.certificate, other_files.key)
    stranger = files.client()
    stranger.load_cert_chain(files.certificate, files.key)
    with gateway_with(listener_config, environ, known) as gateway:
        for context in (anybody, stranger):
            with pytest.raises(httpx.TransportError):
                readiness(gateway, context)
        body = envelope(CONTEXT, {"apiToken": "gwc_nonsense"})
        answer = httpx.post(gateway.url, json=body, verify=known, trust_env=False)
        assert answer.json()["error"]["data"]["code"] == "unauthorized"


def test_ecosystems_client_calls_over_tls(
    listener_config: GatewayConfig, files: TlsFiles, tmp_path: Path, fresh_label: str
) -> None:
    with gateway_with(listener_config, files.environ, files.client()) as gateway:
        client = NpmClient(tmp_path / "npm.log", {"NODE_EXTRA_CA_CERTS": str(files.ca)})
        try:
            caller = new_caller(client, gateway.url, listener_config.admin_token, fresh_label)
            assert client.call(gateway.url, CONTEXT, caller.asks()).response
        finally:
            client.stop()


@pytest.mark.parametrize(
    ("spoil", "key", "sentence"),
    [
        (lambda files: files.key.unlink(), "key_file", "cannot be read: No such file or directory"),
        (
            lambda files: files.certificate.write_text("nonsense"),
            "certificate_file",
            "the certificate is no PEM",
        ),
        (lambda files: files.key.write_text("nonsense"), "key_file", "the key is no PEM"),
    ],
)
def test_start_with_files_that_cannot_be_used_is_refused(
    listener_config: GatewayConfig, files: TlsFiles, spoil: object, key: str, sentence: str
) -> None:
    assert callable(spoil)
    spoil(files)
    ended = run("serve", "--config", listener_config.config_file, environ=files.environ)
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith(f"http.{key}: ")
    assert sentence in ended.stderr


def test_check_tells_of_the_files_before_a_start(
    listener_config: GatewayConfig, files: TlsFiles, other_files: TlsFiles
) -> None:
    def found() -> tuple[str, str]:
        finding = check(listener_config.config_file, files.environ)["http"]
        return finding["state"], finding["finding"]

    state, said = found()
    assert (state, "has TLS until" in said) == ("ok", True)
    shutil.copy(other_files.key, files.key)
    assert found() == (
        "failed",
        "http.key_file: the key is not the certificate's.",
    )
    later = substitute("localhost", datetime.now(UTC) + timedelta(days=30))
    files.certificate.write_bytes(later.chain_pem)
    files.key.write_bytes(later.key_pem)
    state, said = found()
    assert (state, said.startswith("The certificate is not valid before 2")) == ("failed", True)
