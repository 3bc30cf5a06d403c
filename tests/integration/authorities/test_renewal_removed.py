"""An authority that is in the configuration no more: renewals, issuances and debts leave it."""

from pathlib import Path

from gateway.certificates.cleanup import UNKNOWN_HERE_TRIES
from tests.integration.authorities.duo import is_from, running_duo
from tests.integration.authorities.renewing import renewing_ca, replaced_by
from tests.integration.service.calling import Ownership
from tests.lab.bind import BindPair
from tests.lab.gateway import start_gateway
from tests.lab.pebble import PebbleProcess
from tests.lab.process import wait_until


def test_all_that_was_at_a_removed_authority_goes_on_at_the_other(
    tmp_path: Path, bind: BindPair, mortal_pebble: PebbleProcess
) -> None:
    first = mortal_pebble
    with (
        renewing_ca(tmp_path / "ca", bind) as ca,
        running_duo(tmp_path, bind, first, ca.proxy) as duo,
    ):
        issued, under_way, owing = (duo.world.ownership() for _ in range(3))
        assert is_from(issued.certificate(), first)
        serial = duo.certificate(issued.hostname)["serial"]

        def is_at_the_first(mine: Ownership) -> bool:
            issuance = duo.issuance(mine.hostname)
            where = issuance.get("state"), issuance.get("directory_url")
            return where == ("published", first.directory_url)

        def is_put_off(mine: Ownership) -> bool:
            debts = duo.document(mine.hostname)["debts"]
            return [(each["kind"], each["tries"] > 0) for each in debts] == [
                ("authorization", True)
            ]

        bind.secondary_process.pause()
        try:
            for mine in (under_way, owing):
                mine.get()
                wait_until(lambda mine=mine: is_at_the_first(mine), "an order waits for the DNS")
            first.stop()
            owing.release()
            wait_until(
                lambda: (
                    [
                        debt["kind"]
                        for debt in duo.document(owing.hostname).get("debts", [])
                        if debt["tries"] > 0
                    ]
                    == ["authorization"]
                ),
                "the authorization cannot be taken back",
            )
            duo.gateway.stop()
        finally:
            bind.secondary_process.resume()
        file = duo.config.config_file
        text = file.read_text().replace(first.directory_url, ca.proxy.directory_url)
        file.write_text(text.replace(str(first.ca_file), str(ca.proxy.ca_file)))
        gateway = start_gateway(duo.config)
        try:
            # The order is left to gateways that may know the authority, for some minutes.
            def is_issued() -> bool:
                if duo.issuance(under_way.hostname).get("state") == "waiting":
                    duo.hurry(under_way.hostname)
                return bool(under_way.get()["status"] == "ready")

            wait_until(is_issued, "the other one issues")
            assert is_from(under_way.certificate(), ca.pebble)
            assert is_from(issued.certificate(), first)
            duo.renew_now(issued.hostname)
            renewed = duo.wait_until_renewed(issued, serial)
            assert renewed["directory_url"] == ca.proxy.directory_url
            assert is_from(issued.certificate(), ca.pebble)
            orders = [each for name in (issued, under_way) for each in ca.orders(name.hostname)]
            assert [replaced_by(order) for order in orders] == [None, None]
            # What is owed at the removed one is kept for them as well, but not for ever.
            for mine in (under_way, owing):
                wait_until(lambda mine=mine: is_put_off(mine), "the debt is put off")
                duo.change_debt(mine.hostname, {"tries": UNKNOWN_HERE_TRIES, "due_at_ms": 0})
            duo.wait_until_at_rest(under_way.hostname)
            wait_until(lambda: not duo.document(owing.hostname), "nothing is owed")
        finally:
            gateway.stop()
