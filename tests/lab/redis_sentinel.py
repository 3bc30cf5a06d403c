"""Starts a Sentinel set: a primary, its replica, and three Sentinels that replace the primary.

Responsible for: all five as processes of their own, a set that is whole (replicating, every
Sentinel knowing the others) when it is started, and saying who is the primary now. A primary that
is gone is replaced after about a second.
Must not: look into what is stored.
Called by: fault tests.
"""

from pathlib import Path

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, find_program, wait_until
from tests.lab.redis import RedisProcess, answers_ping, ask_redis, start_redis

SERVICE = "gateway"
_SENTINELS = 3
_QUORUM = 2
_CONFIG = """\
port {port}
bind {host}
dir {folder}
sentinel monitor {service} {host} {primary_port} {quorum}
sentinel down-after-milliseconds {service} 800
sentinel failover-timeout {service} 3000
"""


class SentinelSet:
    """A running set; `url` names the Sentinels and stays the same over failovers."""

    def __init__(self, servers: list[RedisProcess]) -> None:
        self.servers = servers
        self.sentinels: dict[int, Process] = {}
        """The Sentinels by their ports."""

    @property
    def url(self) -> str:
        members = ",".join(f"{LOOPBACK}:{port}" for port in self.sentinels)
        return f"redis+sentinel://{members}/{SERVICE}"

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes()]

    @property
    def data_folders(self) -> list[Path]:
        return [folder for server in self.servers for folder in server.data_folders]

    def primary(self) -> RedisProcess:
        """The primary that the Sentinels name now."""
        _, port = self._ask("get-master-addr-by-name")
        return next(server for server in self.servers if str(server.port) == port)

    def replica(self) -> RedisProcess:
        """The other one."""
        primary = self.primary()
        return next(server for server in self.servers if server is not primary)

    def wait_until_whole(self) -> None:
        """Wait until the Sentinels know each other and the replica, and it has all data.

        Raises: LabFault.
        """
        wait_until(self._is_whole, "the Sentinel set is whole")

    def stop(self) -> None:
        """Stop it. May be repeated."""
        for process in self._processes():
            process.stop()

    def start_sentinel(self, folder: Path) -> None:
        """Add one more Sentinel."""
        port = free_port()
        config_file = folder / "sentinel.conf"
        config_file.write_text(
            _CONFIG.format(
                port=port,
                host=LOOPBACK,
                folder=folder,
                service=SERVICE,
                primary_port=self.servers[0].port,
                quorum=_QUORUM,
            )
        )
        command = [find_program("redis-server", "redis-server"), str(config_file), "--sentinel"]
        process = Process("sentinel", command, folder)
        process.start(lambda: answers_ping(port))
        self.sentinels[port] = process

    def _processes(self) -> list[Process | RedisProcess]:
        return [*self.sentinels.values(), *self.servers]

    def _is_whole(self) -> bool:
        states = [self._state(port) for port in self.sentinels]
        return all(
            state.get("num-slaves") == "1"
            and state.get("num-other-sentinels") == str(_SENTINELS - 1)
            and state.get("flags") == "master"
            for state in states
        ) and "state=online" in ask_redis(self.primary().port, "INFO", "replication")

    def _state(self, port: int) -> dict[str, str]:
        lines = ask_redis(port, "SENTINEL", "master", SERVICE).splitlines()
        return dict(zip(lines[::2], lines[1::2], strict=True))

    def _ask(self, question: str) -> list[str]:
        return ask_redis(next(iter(self.sentinels)), "SENTINEL", question, SERVICE).splitlines()


def start_sentinel_set(folder: Path) -> SentinelSet:
    """Start a set with its data below `folder`.

    Raises: LabFault. Nothing is left running then.
    """
    started = SentinelSet([])
    try:
        primary = start_redis(_subfolder(folder, "redis-1"), *_PROMPT)
        started.servers.append(primary)
        replicaof = ["--replicaof", LOOPBACK, str(primary.port)]
        started.servers.append(start_redis(_subfolder(folder, "redis-2"), *_PROMPT, *replicaof))
        for number in range(1, _SENTINELS + 1):
            started.start_sentinel(_subfolder(folder, f"sentinel-{number}"))
        started.wait_until_whole()
    except BaseException:
        started.stop()
        raise
    return started


_PROMPT = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")


def _subfolder(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir(mode=0o700, parents=True)
    return path
