"""A Redis Cluster of three nodes and of six, beside one Redis: what each node is asked.

Responsible for hostnames of as many clients, made by calls; for the same calls at all three, in
turns; and for listening to every node meanwhile: no script touches two slots, and no node is asked
much more than another. Called by `rows`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import bodies
from tests.bench.asking import ask_for_all
from tests.bench.bursts import Burst, send_each
from tests.bench.comparing import alone, alternate, at_most, compared
from tests.bench.gateways import serving
from tests.bench.lanes import Ground
from tests.bench.monitoring import Asked, monitored
from tests.bench.paces import Pace, tell
from tests.bench.stock import Stock, address
from tests.bench.stocking import provision_clients
from tests.bench.visits import Visitor
from tests.lab.lab import LabOptions, running_lab
from tests.lab.process import LabFault
from tests.lab.redis import RedisDeployment, start_redis
from tests.lab.redis_cluster import start_redis_cluster

NODES = (3, 6)
EVEN = 1.5

_ERRANDS = (
    *("get ready", "context", "sync unchanged", "sync replace"),
    *("create and withdraw", "provisioning"),
)
_SECONDS = 5.0
_CONNECTIONS = 8
_LIMIT_SECONDS = 300.0
_NODE_TIMEOUT_MS = 15_000
"""Redis' own default: a node that waits for its turn on a busy machine is not dead."""


class _OneEach(Stock):
    """A client for each hostname: clients have slots of their own, too."""

    @property
    def clients(self) -> int:
        return self.holdings


@dataclass
class _Place:
    ports: list[int]
    visitor: Visitor


def measure(pace: Pace) -> dict[str, Any]:
    """All rounds; `pace.size` hostnames."""
    rows: list[dict[str, Any]] = []
    faults: list[str] = []
    sizes = NODES[:1] if pace.is_smoke else NODES
    seconds = pace.seconds(_SECONDS)
    with _place(pace, start_redis) as one:
        for nodes in sizes:
            tell(f"a Cluster of {nodes} nodes")
            start = partial(start_redis_cluster, nodes=nodes, node_timeout_ms=_NODE_TIMEOUT_MS)
            with _place(pace, start) as many:
                pairs = alternate(
                    pace.rounds,
                    partial(many.visitor.medians_ms, _ERRANDS, seconds),
                    partial(one.visitor.medians_ms, _ERRANDS, seconds),
                )
                rows += [
                    {
                        **compared(
                            f"{nodes} nodes: {kind}",
                            "ms",
                            "one Redis",
                            [(first[kind], second[kind]) for first, second in pairs],
                            None,
                        ),
                        # All nodes share one machine, so that says little.
                        "isDetail": True,
                    }
                    for kind in pairs[0][0]
                ]
                with monitored(many.ports) as asked:
                    many.visitor.medians_ms(_ERRANDS, seconds)
                rows += _spread(nodes, asked)
                faults += many.visitor.faults()
        faults += one.visitor.faults()
    return {"rows": rows, "notes": [], "faults": faults}


def _spread(nodes: int, asked: list[Asked]) -> list[dict[str, Any]]:
    mean = sum(one.commands for one in asked) / nodes
    if not mean or not any(one.scripts for one in asked):
        raise LabFault("the nodes of the Cluster were asked nothing")
    busiest = max(one.commands for one in asked) / mean
    most_slots = max(one.most_slots for one in asked)
    return [
        alone(f"{nodes} nodes: slots that a script touches, at most", "", [most_slots], at_most(1)),
        alone(f"{nodes} nodes: the busiest to the mean", "", [busiest], at_most(EVEN)),
    ]


@contextmanager
def _place(pace: Pace, start: Any) -> Iterator[_Place]:
    """A lab on a Redis of some kind, with hostnames that have a record and a certificate."""
    deployments: list[RedisDeployment] = []

    def start_noted(folder: Path) -> RedisDeployment:
        deployments.append(start(folder))
        return deployments[0]

    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(LabOptions(gateways=0, start_redis=start_noted)))
        # The nodes are primaries only: none has a replica that a write could wait for.
        environ = {"GATEWAY_REDIS__REPLICAS": "0"}
        (gateway,) = stack.enter_context(serving(lab.config, environ=environ))
        stock = _OneEach(pace.size)
        tokens = provision_clients(gateway.url, lab.config.admin_token, stock)
        _fill(gateway.port, stock, tokens)
        ground = Ground(gateway.port, stock, tokens, lab.config.admin_token)
        visitor = stack.enter_context(closing(Visitor(ground)))
        nodes = getattr(deployments[0], "nodes", deployments)
        yield _Place([node.port for node in nodes], visitor)


def _fill(port: int, stock: Stock, tokens: tuple[str, ...]) -> None:
    numbers = range(stock.holdings)
    records = [bodies.sync(stock, tokens, number, address(number)) for number in numbers]
    load = send_each(Burst((port,), records, b'"managed-created"'), _CONNECTIONS)
    if load.failed:
        raise LabFault(f"{load.failed} records were not created")
    questions = {stock.hostname(each): bodies.get(stock, tokens, each) for each in numbers}
    issued = ask_for_all(
        (port,), questions, _CONNECTIONS, longest_pause=1.0, limit_seconds=_LIMIT_SECONDS
    )
    if issued.wrong:
        raise LabFault(f"the certificate of {issued.wrong[0]} is wrong")
