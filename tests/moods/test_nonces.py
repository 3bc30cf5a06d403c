"""`badNonce`, as often as Pebble can be made to say it."""

from pathlib import Path

from tests.lab.acme_calls import Operation
from tests.lab.bind import BindPair
from tests.moods.moodlab import mood_lab


def test_certificate_comes_though_nine_of_ten_nonces_are_rejected(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind, environ={"PEBBLE_WFE_NONCEREJECT": "90"}) as lab:
        mine = lab.world.ownership()
        lab.issued(mine)
        rejected = [
            call
            for call in lab.proxy.seen(Operation.NEW_ORDER, mine.hostname)
            if call.status == 400
        ]
        assert len(lab.orders(mine)) == 1
        assert len(lab.proxy.done(Operation.NEW_ACCOUNT)) == 1
        # Rejected requests were never carried out: they are no orders, whatever they are called.
        assert all(call.ca_status == 400 for call in rejected)
        seen = [call.status for call in lab.proxy.calls]
        assert seen.count(400) > 10
