"""One client's hundreds of requests and another's one: whose turn it is, and who does the work.

Judged by order and count. All of them are asked for before anybody works, the one last, so that in
a single line it would be the last to be issued. They all lie in one bucket, that is in one due
queue: whoever reads only the head of it never sees the one until the many are done.
"""

import secrets
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from gateway.store.keys import BUCKETS, bucket_of
from tests.faults.client import Client
from tests.faults.faultlab import ZONE, FaultLab, further_gateway
from tests.lab.forks import ForkedGateway
from tests.lab.process import Process, wait_until

MANY = 200
FEWER = 200
PLACES = 4
WORKERS = 2
_CALLS_AT_ONCE = 8
_ISSUED = "certificate issued"
_ENVIRON = {"GATEWAY_WORKER__CONCURRENCY": str(PLACES)}


@pytest.fixture(scope="module")
def one_more(fault_lab: FaultLab) -> Iterator[Client]:
    """A second client, who may hold what the first may."""
    admin_token = fault_lab.lab.config.admin_token
    client = Client.made_by_admin(
        fault_lab.desk.url, admin_token, f"*.{ZONE}", client_id="another-relay"
    )
    yield client
    client.close()


def test_one_request_behind_hundreds_of_another_client_is_issued_before_most_of_them(
    fault_lab: FaultLab, one_more: Client, tables: list[str]
) -> None:
    *many, one = _in_one_bucket(MANY + 1)
    _ask_for(fault_lab, many)
    one_more.get(fault_lab.desk.url, one)
    with _workers(fault_lab) as workers:
        wait_until(lambda: _issued(fault_lab, [one]) == 1, "the one is issued")
        before = _issued(fault_lab, many)
        fault_lab.wait_until_issued(many)
        fault_lab.wait_until_settled([one, *many])
    shares = [worker.log_file.read_text().count(_ISSUED) for worker in workers]
    tables.append(
        f"1 hostname asked for after another client's {MANY}, {WORKERS} workers of {PLACES} "
        f"places: {before} of the {MANY} were issued before it; issued by each worker: {shares}"
    )
    assert before <= MANY // 5
    assert sum(shares) == MANY + 1
    assert min(shares) >= MANY // 5


def test_one_request_at_a_gateway_with_a_backlog_is_issued_before_most_of_it(
    fault_lab: FaultLab, one_more: Client
) -> None:
    *many, one = _in_one_bucket(FEWER + 1)
    _ask_for(fault_lab, many)
    with further_gateway(fault_lab.lab, works=True, environ=_ENVIRON) as gateway:
        one_more.get(gateway.url, one)
        when_asked = _issued(fault_lab, many)
        wait_until(lambda: _issued(fault_lab, [one]) == 1, "the one is issued")
        before = _issued(fault_lab, many) - when_asked
        for hostname in many:
            fault_lab.client.release(gateway.url, hostname)
        fault_lab.wait_until_settled([one, *many])
    assert when_asked < FEWER // 2
    assert before <= FEWER // 5


def _in_one_bucket(count: int) -> list[str]:
    """So many new hostnames of one bucket, any one."""
    bucket = secrets.randbelow(BUCKETS)
    found: list[str] = []
    while len(found) < count:
        hostname = f"t{secrets.token_hex(6)}.{ZONE}"
        if bucket_of(hostname) == bucket:
            found.append(hostname)
    return found


def _ask_for(fault_lab: FaultLab, hostnames: list[str]) -> None:
    """Ask for certificates where nobody works on them."""
    with ThreadPoolExecutor(_CALLS_AT_ONCE) as threads:
        list(threads.map(lambda name: fault_lab.client.get(fault_lab.desk.url, name), hostnames))


def _issued(fault_lab: FaultLab, hostnames: list[str]) -> int:
    documents = fault_lab.evidence.documents(hostnames).values()
    return len([each for each in documents if each.certificate is not None])


@contextmanager
def _workers(fault_lab: FaultLab) -> Iterator[list[Process]]:
    """Processes that only work, and never learn of a call but by the queues."""
    config_file = fault_lab.lab.config.config_file
    gateway = str(Path(sys.executable).with_name("gateway"))
    command = [gateway, "worker", "--config", str(config_file)]
    workers = [
        ForkedGateway(f"worker-{secrets.token_hex(4)}", command, config_file.parent, _ENVIRON)
        for _ in range(WORKERS)
    ]
    with ExitStack() as stack:
        for worker in workers:
            stack.callback(worker.stop)
            # The next one's start does not wait for this one's.
            worker.start(lambda: True)
        yield workers
