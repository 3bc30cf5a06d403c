"""The reference of many issuances: the barest script on `acme` that does the same work.

One account, threads that take hostnames from a list: an order, the TXT value by dnspython, the
answer, polls each 20 ms, a key, the certificate, the value removed. Nothing is stored and nothing
is retried but a refused nonce. `python -m tests.bench.reference_issue` reads what to do as JSON
from standard input, and writes one line of JSON. Called by `issuing`.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import dns.query
import dns.rcode
import dns.tsig
import dns.update
from acme import challenges, client, errors, messages
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from josepy.jwa import ES256
from josepy.jwk import JWKEC

_POLL_SECONDS = 0.02
_LIMIT_SECONDS = 30.0
_NONCE_TRIES = 10
_TTL = 60

T = TypeVar("T")


class Issuer:
    """One thread's client, and the zone that it writes to. `told` is the JSON that was read."""

    def __init__(self, told: dict[str, Any], key: JWKEC, account_uri: str | None) -> None:
        network = client.ClientNetwork(key, alg=ES256)
        # Neither proxies nor `.netrc` for every request.
        network.session.trust_env = False
        network.verify_ssl = told["ca_file"]
        directory = messages.Directory.from_json(network.get(told["directory"]).json())
        self._acme = client.ClientV2(directory, network)
        self._told = told
        if account_uri is None:
            wanted = messages.NewRegistration(terms_of_service_agreed=True)
            network.account = _retried(lambda: self._acme.new_account(wanted))
        else:
            body = messages.Registration()
            network.account = messages.RegistrationResource(uri=account_uri, body=body)
        self.account_uri: str = network.account.uri

    def issue(self, hostname: str) -> str:
        """Have one certificate issued; its chain (PEM)."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(hostname)])
        request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        signed = request.add_extension(names, critical=False).sign(key, hashes.SHA256())
        order = _retried(lambda: self._acme.new_order(signed.public_bytes(Encoding.PEM)))
        for authorization in order.authorizations:
            if authorization.body.status is not messages.STATUS_VALID:
                self._validate(authorization, hostname)
        # The library's own poll sleeps for a second before it asks.
        order = _retried(lambda: self._acme.begin_finalization(order))
        end = time.monotonic() + _LIMIT_SECONDS
        while order.body.certificate is None:
            if time.monotonic() > end:
                raise TimeoutError(hostname)
            time.sleep(_POLL_SECONDS)
            order = order.update(body=self._order(order.uri))
        url = order.body.certificate
        chain: str = _retried(lambda: self._post(url)).text
        return chain

    def _validate(self, authorization: messages.AuthorizationResource, hostname: str) -> None:
        (body,) = (
            each
            for each in authorization.body.challenges
            if isinstance(each.chall, challenges.DNS01)
        )
        response, value = body.response_and_validation(self._acme.net.key)
        name = body.chall.validation_domain_name(hostname)
        self._change(lambda update: update.add(f"{name}.", _TTL, "TXT", value))
        _retried(lambda: self._acme.answer_challenge(body, response))
        end = time.monotonic() + _LIMIT_SECONDS
        while authorization.body.status is not messages.STATUS_VALID:
            if authorization.body.status is messages.STATUS_INVALID or time.monotonic() > end:
                raise RuntimeError(f"{hostname} was not validated")
            time.sleep(_POLL_SECONDS)
            authorization, _ = _retried(lambda: self._acme.poll(authorization))  # noqa: B023
        self._change(lambda update: update.delete(f"{name}.", "TXT", value))

    def _order(self, url: str) -> messages.Order:
        order: messages.Order = messages.Order.from_json(_retried(lambda: self._post(url)).json())
        return order

    def _post(self, url: str) -> Any:
        new_nonce_url = self._acme.directory["newNonce"]
        return self._acme.net.post(url, None, new_nonce_url=new_nonce_url)

    def _change(self, change: Callable[[dns.update.UpdateMessage], object]) -> None:
        name, secret, algorithm = self._told["tsig"]
        update = dns.update.UpdateMessage(
            self._told["zone"], keyring=dns.tsig.Key(name, secret, algorithm)
        )
        change(update)
        host, port = self._told["primary"]
        answer = dns.query.tcp(update, host, _LIMIT_SECONDS, port)
        if answer.rcode() != dns.rcode.NOERROR:
            raise RuntimeError(f"the update was refused: {answer.rcode()}")


def main() -> None:
    """Issue all that was told; began, ended (steady clock) and how many certificates there are."""
    told = json.load(sys.stdin)
    key = JWKEC(key=ec.generate_private_key(ec.SECP256R1()))
    first = Issuer(told, key, None)
    others = [Issuer(told, key, first.account_uri) for _ in range(told["threads"] - 1)]
    hostnames = iter(told["hostnames"])
    lock = threading.Lock()
    chains: list[str] = []

    def take() -> Iterator[str]:
        while True:
            with lock:
                hostname = next(hostnames, None)
            if hostname is None:
                return
            yield hostname

    def work(issuer: Issuer) -> None:
        chains.extend(issuer.issue(hostname) for hostname in take())

    threads = [threading.Thread(target=work, args=(issuer,)) for issuer in (first, *others)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    issued = sum("BEGIN CERTIFICATE" in chain for chain in chains)
    told_back = {"began": began, "ended": time.monotonic(), "issued": issued}
    sys.stdout.write(json.dumps(told_back) + "\n")


def _retried(call: Callable[[], T]) -> T:
    for _ in range(_NONCE_TRIES):
        try:
            return call()
        except messages.Error as error:
            if error.code != "badNonce":
                raise
        except errors.BadNonce:
            pass
    raise RuntimeError(f"{_NONCE_TRIES} nonces in a row were refused")


if __name__ == "__main__":
    main()
