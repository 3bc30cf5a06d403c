"""The scripted proxy itself: without a mood it changes nothing, and it knows every request."""

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.moods.moodlab import MoodLab


def test_issuance_without_a_mood_is_as_smooth_as_ever(moody: MoodLab, mine: Ownership) -> None:
    assert moody.issued(mine).reasons == set()
    calls = [call for call in moody.proxy.calls if call.hostname == mine.hostname]
    assert {(call.ca_status, call.status) for call in calls} <= {(200, 200), (201, 201)}
    kinds = [call.operation for call in calls]
    for once in (
        Operation.NEW_ORDER,
        Operation.CHALLENGE,
        Operation.FINALIZE,
        Operation.CERTIFICATE,
    ):
        assert kinds.count(once) == 1
    assert Operation.AUTHORIZATION in kinds
    assert moody.proxy.seen(Operation.OTHER) == []
