"""How programs with a blocking client end: each here is a process of its own."""

import subprocess
import sys
from textwrap import dedent

import pytest

from tests.lab.liar import Liar, response

RELEASED = response({"status": "released"})
MADE = """
    import os, resource
    from gateway.client import GatewayClient
    RELAY = {"appId": "relay", "hostname": "relay.example.test"}
"""


def run(program: str, url: str) -> subprocess.CompletedProcess[str]:
    """Run a program that finds the liar's URL in `URL`; it is killed if it does not end."""
    source = f"URL = {url!r}\n{dedent(MADE)}\n{dedent(program)}"
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=30
    )


def test_program_that_never_closes_its_client_ends(liar: Liar) -> None:
    liar.answers(RELEASED)
    done = run(
        """
        client = GatewayClient(URL, "gwc_any")
        print(client.release_certificate(RELAY).status)
        """,
        liar.url,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "released\n", "")


def test_program_that_fails_before_it_closes_its_client_ends_with_its_own_error(
    liar: Liar,
) -> None:
    liar.answers(RELEASED)
    done = run(
        """
        client = GatewayClient(URL, "gwc_any")
        client.release_certificate(RELAY)
        raise SystemExit("something else went wrong")
        """,
        liar.url,
    )
    assert (done.returncode, done.stderr) == (1, "something else went wrong\n")


def test_client_that_nobody_has_any_more_takes_its_thread_along(liar: Liar) -> None:
    liar.answers(RELEASED)
    done = run(
        """
        import threading
        client = GatewayClient(URL, "gwc_any")
        client.release_certificate(RELAY)
        (thread,) = (each for each in threading.enumerate() if each.name == "gateway-client")
        del client
        thread.join(20)
        print(thread.is_alive())
        """,
        liar.url,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    ("call", "said"),
    [("client.get_context()", "made before the process forked"), ("client.close()", "nothing")],
)
def test_forked_child_is_told_to_make_its_own_client(liar: Liar, call: str, said: str) -> None:
    liar.answers(RELEASED)
    done = run(
        f"""
        client = GatewayClient(URL, "gwc_any")
        child = os.fork()
        if not child:
            try:
                {call}
                print("nothing", flush=True)
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(client.release_certificate(RELAY).status)
        client.close()
        """,
        liar.url,
    )
    assert said in done.stdout
    assert done.stdout.endswith("released\n")


def test_forked_child_leaves_the_connections_of_an_asynchronous_client_alone(liar: Liar) -> None:
    liar.answers(RELEASED)
    done = run(
        """
        import asyncio
        from gateway.client import AsyncGatewayClient

        async def ask(client, ending):
            try:
                print((await client.release_certificate(RELAY)).status, flush=True)
            except RuntimeError as error:
                print(error, flush=True)
            if ending:
                await client.aclose()

        used, unused = AsyncGatewayClient(URL, "gwc_any"), AsyncGatewayClient(URL, "gwc_any")

        async def main():
            await ask(used, ending=False)
            child = os.fork()
            if not child:
                # A loop of its own, as a process has that is forked from a server.
                asyncio.events._set_running_loop(None)
                for client in used, unused:
                    asyncio.run(ask(client, ending=True))
                os._exit(0)
            os.waitpid(child, 0)
            await ask(used, ending=True)

        asyncio.run(main())
        """,
        liar.url,
    )
    told = "This client was made before the process forked: make one after it."
    assert done.stdout.splitlines() == ["released", told, "released", "released"]
    assert liar.connections == 2


def test_asynchronous_client_in_another_event_loop_is_told_to_be_made_anew(liar: Liar) -> None:
    liar.answers(RELEASED)
    done = run(
        """
        import asyncio, warnings
        from gateway.client import AsyncGatewayClient

        warnings.simplefilter("ignore", ResourceWarning)
        client = AsyncGatewayClient(URL, "gwc_any")
        print(asyncio.run(client.release_certificate(RELAY)).status)
        try:
            asyncio.run(client.release_certificate(RELAY))
        except RuntimeError as error:
            print(error)
        asyncio.run(client.aclose())
        """,
        liar.url,
    )
    told = "used in another event loop, to which its connections belong: make one in each."
    assert done.stdout == f"released\nThis client was {told}\n"
    assert done.returncode == 0


def test_client_without_a_file_to_open_is_told_at_once(liar: Liar) -> None:
    done = run(
        """
        import asyncio, asyncio.selector_events, socket
        held = [os.open("/dev/null", os.O_RDONLY)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, held[0] + 1))
        try:
            GatewayClient(URL, "gwc_any")
        except OSError as error:
            print(error.strerror)
        """,
        liar.url,
    )
    assert done.stdout == "Too many open files\n"
