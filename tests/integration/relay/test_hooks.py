"""The agent's deploy hook on a relay: what is served when it succeeds, and when it fails."""

from pathlib import Path

from gateway.agent.hook import Hook
from tests.integration.relay.relays import HOOK_LIMIT_SECONDS, Relay, reload_hook
from tests.lab.process import wait_until


async def test_the_new_certificate_is_served_when_the_hook_has_reloaded_nginx(
    relay: Relay, hostname: str
) -> None:
    serial = relay.install(hostname)
    result = await reload_hook(relay.nginx).run(relay.hook_environment(hostname))
    assert result.succeeded, result.output
    wait_until(lambda: relay.served(hostname) == serial, "the new certificate is served")


async def test_the_old_certificate_is_served_when_the_hook_fails(
    relay: Relay, hostname: str
) -> None:
    before = relay.served(hostname)
    relay.install(hostname)
    hook = Hook(("/bin/sh", "-c", "exit 3"), HOOK_LIMIT_SECONDS)
    result = await hook.run(relay.hook_environment(hostname))
    assert (result.succeeded, relay.served(hostname)) == (False, before)


async def test_the_hook_fails_and_says_why_when_nginx_refuses_its_configuration(
    relay: Relay, hostname: str
) -> None:
    _break_configuration(relay)
    relay.install(hostname)
    result = await reload_hook(relay.nginx).run(relay.hook_environment(hostname))
    assert not result.succeeded
    assert 'unknown directive "no_such_directive"' in result.output


async def test_the_old_certificate_is_served_when_nginx_refuses_its_configuration(
    relay: Relay, hostname: str
) -> None:
    before = relay.served(hostname)
    _break_configuration(relay)
    relay.install(hostname)
    await reload_hook(relay.nginx).run(relay.hook_environment(hostname))
    assert relay.served(hostname) == before


async def test_a_hook_tried_again_serves_the_new_certificate_when_the_configuration_is_mended(
    relay: Relay, hostname: str
) -> None:
    fragment = _break_configuration(relay)
    serial = relay.install(hostname)
    hook, environment = reload_hook(relay.nginx), relay.hook_environment(hostname)
    await hook.run(environment)
    fragment.unlink()
    await hook.run(environment)
    wait_until(lambda: relay.served(hostname) == serial, "the new certificate is served")


def _break_configuration(relay: Relay) -> Path:
    """As an operator's unfinished edit does; answers the file to take away again."""
    fragment = relay.nginx.sites_folder / "unfinished.conf"
    fragment.write_text("no_such_directive on;\n")
    return fragment
