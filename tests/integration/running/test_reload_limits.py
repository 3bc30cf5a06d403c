"""SIGHUP and limits: other figures hold from the next call on."""

from tests.integration.running.site import Site, replaced
from tests.integration.service.calling import CONTEXT, Caller, World


def test_limits_are_taken_by_a_reload_and_known_tokens_stay_known(site: Site, world: World) -> None:
    caller, stranger = world.client(), Caller(world.url, "nonsense")
    assert caller.call(CONTEXT)
    narrow = replaced(site.text, "calls_per_minute = 0", "calls_per_minute = 1")
    narrow = replaced(narrow, "unauthenticated_per_minute = 0", "unauthenticated_per_minute = 1")
    site.reload(narrow)
    codes = [stranger.refused(CONTEXT)["code"] for _ in range(2)]
    assert codes == ["unauthorized", "overloaded"]
    # From the same address, with a token that was right before the reload.
    assert caller.call(CONTEXT)
    assert caller.refused(CONTEXT)["code"] == "overloaded"
    site.reload(site.text)
    assert stranger.refused(CONTEXT)["code"] == "unauthorized"
    assert caller.call(CONTEXT)
