"""Starts a Redis Cluster of three primaries or more, and moves its slots while it serves.

Responsible for: the nodes as processes of their own, a Cluster that is whole when it is started,
nodes that join and take slots over, by `redis-cli --cluster` as an operator does it.
Must not: look into what is stored.
Called by: fault tests, `scripts/bench cluster`.
"""

from pathlib import Path

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, ask_redis, run_redis_cli, start_redis

SLOTS = 16384
_NODES = 3
_NODE_TIMEOUT_MS = 1_500
_RESHARDING_LIMIT_SECONDS = 60.0


class RedisCluster:
    """A running Cluster; `url` names the first node alone, the others are found.

    A node that is silent for `node_timeout_ms` is taken for dead by the others.
    """

    def __init__(self, folder: Path, node_timeout_ms: int = _NODE_TIMEOUT_MS) -> None:
        self._folder = folder
        self._node_timeout_ms = node_timeout_ms
        self.nodes: list[RedisProcess] = []

    @property
    def url(self) -> str:
        return f"redis+cluster://{self._address(self.nodes[0])}"

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self.nodes]

    @property
    def data_folders(self) -> list[Path]:
        return [folder for node in self.nodes for folder in node.data_folders]

    def start_node(self) -> RedisProcess:
        """Start a node that belongs to no Cluster yet."""
        folder = self._folder / f"node-{len(self.nodes) + 1}"
        folder.mkdir(mode=0o700, parents=True)
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout"]
        options += [str(self._node_timeout_ms)]
        # Redis's own choice is the port and 10000, which somebody else may have.
        options += ["--cluster-port", str(free_port())]
        node = start_redis(folder, *options)
        self.nodes.append(node)
        return node

    def unite(self) -> None:
        """Make one Cluster of the nodes, all slots spread over them."""
        addresses = [self._address(node) for node in self.nodes]
        self._run("create", *addresses, "--cluster-yes")
        self.wait_until_whole()

    def add_empty_node(self) -> RedisProcess:
        """Let a further node join, without a slot."""
        node = self.start_node()
        self._run("add-node", self._address(node), self._address(self.nodes[0]))
        self.wait_until_whole()
        return node

    def reshard(self, source: RedisProcess, target: RedisProcess, slots: int) -> None:
        """Move slots with all their keys; the Cluster serves meanwhile."""
        options = ["--cluster-from", self._id(source), "--cluster-to", self._id(target)]
        options += ["--cluster-slots", str(slots), "--cluster-yes"]
        self._run("reshard", self._address(self.nodes[0]), *options)

    def slots_of(self, node: RedisProcess) -> int:
        """How many slots a node has."""
        lines = ask_redis(self.nodes[0].port, "CLUSTER", "NODES").splitlines()
        ranges = next(line.split()[8:] for line in lines if line.startswith(self._id(node)))
        moving = [each for each in ranges if each.startswith("[")]
        whole = [each.partition("-") for each in ranges if each not in moving]
        return sum(int(last or first) - int(first) + 1 for first, _, last in whole)

    def wait_until_whole(self) -> None:
        """Wait until every node knows every other, and that all slots are served.

        Raises: LabFault.
        """
        wait_until(self._is_whole, "the Cluster is whole")

    def stop(self) -> None:
        """Stop it. May be repeated."""
        for node in self.nodes:
            node.stop()

    def _is_whole(self) -> bool:
        wanted = {
            "cluster_state:ok",
            f"cluster_slots_ok:{SLOTS}",
            f"cluster_known_nodes:{len(self.nodes)}",
        }
        infos = [ask_redis(node.port, "CLUSTER", "INFO").split() for node in self.nodes]
        return all(wanted <= set(info) for info in infos)

    def _id(self, node: RedisProcess) -> str:
        return ask_redis(node.port, "CLUSTER", "MYID").strip()

    def _run(self, command: str, *arguments: str) -> None:
        run_redis_cli("--cluster", command, *arguments, limit_seconds=_RESHARDING_LIMIT_SECONDS)

    def _address(self, node: RedisProcess) -> str:
        return f"{LOOPBACK}:{node.port}"


def start_redis_cluster(
    folder: Path, nodes: int = _NODES, *, node_timeout_ms: int = _NODE_TIMEOUT_MS
) -> RedisCluster:
    """Start a Cluster of so many primaries with its data below `folder`.

    Raises: LabFault. Nothing is left running then.
    """
    cluster = RedisCluster(folder, node_timeout_ms)
    try:
        for _ in range(nodes):
            cluster.start_node()
        cluster.unite()
    except BaseException:
        cluster.stop()
        raise
    return cluster
