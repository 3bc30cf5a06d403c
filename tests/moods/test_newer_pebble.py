"""The newer Pebble beside the system's: how it is found, what it is for, what stands in for it."""

import datetime
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509

from tests.integration.authorities.renewing import NINETY_DAYS_SECONDS, renewing_ca
from tests.lab.acme_calls import RENEWAL_INFO_PATH, renewal_id
from tests.lab.bind import BindPair
from tests.lab.pebble import AcmeServer
from tests.lab.pebble_newer import (
    Archive,
    CannotBeHad,
    archives,
    fetch,
    why_not,
)
from tests.moods.moodlab import gateway_at, pebble_and_proxy

ONE_LINE = """\
# deb http://commented.invalid/debian sid main
deb [arch=amd64 signed-by=/keys/one.gpg] http://one.invalid/debian bookworm main contrib # why
deb-src http://sources.invalid/debian bookworm main
deb http://two.invalid/debian bookworm non-free
deb http://three.invalid/debian bookworm main
"""

DEB822 = """\
Types: deb deb-src
# URIs: http://commented.invalid/debian
URIs: http://four.invalid/debian
 http://five.invalid/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/four.gpg

Enabled: no
Types: deb
URIs: http://disabled.invalid/debian
Suites: bookworm
Components: main

Types: deb
URIs: http://six.invalid/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEY865UxYJKwYBBAHaRw8BAQdAd7Z0srwuhlB6JKFkcf4HU4SSS
 -----END PGP PUBLIC KEY BLOCK-----
"""


def test_archives_are_read_from_both_forms_of_apt_sources(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d" / "a.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "b.list").write_text(ONE_LINE)
    (tmp_path / "sources.list.d" / "c.list.save").write_text("deb http://no.invalid/ sid main")
    assert archives(tmp_path) == [
        Archive("http://one.invalid/debian", "/keys/one.gpg"),
        Archive("http://three.invalid/debian", ""),
        Archive("http://four.invalid/debian", "/keys/four.gpg"),
        Archive("http://five.invalid/debian", "/keys/four.gpg"),
        Archive("http://six.invalid/debian", ""),
    ]


def test_machine_without_an_archive_is_told_why(tmp_path: Path) -> None:
    with pytest.raises(CannotBeHad, match="no archive configured"):
        fetch(tmp_path / "kept", tmp_path / "apt", limit_seconds=5)


def test_archive_that_has_nothing_is_told_without_its_address(tmp_path: Path) -> None:
    (tmp_path / "apt").mkdir()
    empty = f"file://{tmp_path}/empty"
    (tmp_path / "apt" / "sources.list").write_text(f"deb {empty} bookworm main\n")
    with pytest.raises(CannotBeHad) as reason:
        fetch(tmp_path / "kept", tmp_path / "apt", limit_seconds=30)
    assert "apt-get" in str(reason.value)
    assert empty not in str(reason.value)
    # Nothing half done stays behind.
    assert list((tmp_path / "kept").iterdir()) == []


def test_authority_says_when_to_renew_by_itself_or_it_is_said_why_not(
    tmp_path: Path, bind: BindPair
) -> None:
    profiles = {"default": {"description": "as ever", "validityPeriod": NINETY_DAYS_SECONDS}}
    settings = {"profiles": {**profiles, "shortlived": {"description": "six days"}}}
    with renewing_ca(tmp_path / "ca", bind, settings=settings) as ca:
        directory = read(ca.proxy)
        is_of_the_proxy = directory["renewalInfo"].endswith(RENEWAL_INFO_PATH)
        # What stands in is never taken for the real one, nor the other way round.
        assert is_of_the_proxy is not ca.is_newer
        suites = [suite for suite in ("sid", "forky") if f"{suite}: " in why_not()]
        assert suites == ([] if ca.is_newer else ["sid", "forky"])
        if ca.is_newer:
            assert read(ca.pebble)["renewalInfo"]
            assert set(directory["meta"]["profiles"]) == {"default", "shortlived"}


def test_what_was_unpacked_before_is_used_if_it_runs_and_is_newer(tmp_path: Path) -> None:
    for suite, answers in (("sid", False), ("forky", True)):
        program = tmp_path / suite / "usr" / "bin" / "pebble"
        program.parent.mkdir(parents=True)
        # Such as one made for another libc; 2.4.0 does not know the option either.
        program.write_text("#!/bin/sh\n" + ("exit 0\n" if answers else "exit 2\n"))
        program.chmod(0o700)
    assert fetch(tmp_path, tmp_path / "apt", limit_seconds=5) == program
    program.write_text("#!/bin/sh\nexit 2\n")
    with pytest.raises(CannotBeHad, match=r"sid: it does not run .*; forky: it does not run"):
        fetch(tmp_path, tmp_path / "apt", limit_seconds=5)


def test_proxy_says_when_to_renew_in_the_place_of_a_pebble_that_does_not(
    tmp_path: Path, bind: BindPair
) -> None:
    with pebble_and_proxy(tmp_path, bind) as (pebble, proxy):
        proxy.offer_renewal_info()
        with gateway_at(tmp_path, bind, pebble, proxy) as lab:
            chain = lab.issued(lab.world.ownership()).certificate["chainPem"]
        leaf = x509.load_pem_x509_certificates(chain.encode())[0]
        base = read(proxy)["renewalInfo"]
        assert base.startswith(proxy.directory_url.rsplit("/", 1)[0])
        window = ask(proxy, f"{base}/{renewal_id(leaf)}").json()["suggestedWindow"]
        start, end = (datetime.datetime.fromisoformat(window[name]) for name in ("start", "end"))
        assert leaf.not_valid_before_utc < start < end < leaf.not_valid_after_utc
        unknown = ask(proxy, f"{base}/aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE")
        assert unknown.status_code == 404


def ask(server: AcmeServer, url: str) -> httpx.Response:
    tls = ssl.create_default_context(cafile=server.ca_file)
    return httpx.get(url, verify=tls, trust_env=False)


def read(server: AcmeServer) -> dict[str, Any]:
    found: dict[str, Any] = ask(server, server.directory_url).json()
    return found
