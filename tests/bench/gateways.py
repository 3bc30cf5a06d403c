"""Gateways under load, as one in production is: figures shown, calls counted, and every one let by.

Called by the benches.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from tests.lab.gateway import GatewayConfig, GatewayProcess, running_gateway
from tests.lab.lab import Lab
from tests.lab.ports import LOOPBACK, free_port


def loaded_environ(metrics_port: int) -> dict[str, str]:
    """What such a gateway has in its environment."""
    return {
        "GATEWAY_METRICS__LISTEN": f"{LOOPBACK}:{metrics_port}",
        "GATEWAY_LOG__FORMAT": "json",
        "GATEWAY_LIMITS__CALLS_PER_MINUTE": "1000000",
        "GATEWAY_LIMITS__UNAUTHENTICATED_PER_MINUTE": "1000000",
        "GATEWAY_LIMITS__UNAUTHENTICATED_PER_SECOND": "1000000",
        "GATEWAY_LIMITS__CONCURRENT_CALLS_PER_CREDENTIAL": "64",
    }


def look_at_primary_alone(lab: Lab) -> None:
    """Have its gateways look for challenges at the primary only.

    Other clients look nowhere, as they are told to here; and the secondary is behind a relay of the
    lab's, which would take as much processor time as the gateway's own look.
    """
    text = lab.config.config_file.read_text()
    host, _ = lab.bind.primary
    told = f'servers = ["{host}"]\n\n[zones.tsig]'
    lab.config.config_file.write_text(text.replace("[zones.tsig]", told))


@contextmanager
def serving(
    config: GatewayConfig, count: int = 1, environ: Mapping[str, str] | None = None
) -> Iterator[list[GatewayProcess]]:
    """So many of them, on one Redis; the first at the configured port."""
    with ExitStack() as stack:
        gateways = []
        for number in range(1, count + 1):
            own = {**loaded_environ(free_port()), **(environ or {})}
            port = config.port if number == 1 else free_port()
            running = running_gateway(config, f"gateway-{number}", port=port, environ=own)
            gateways.append(stack.enter_context(running))
        yield gateways
