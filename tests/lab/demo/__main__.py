"""The program behind `scripts/demo`: a lab, the story in it, and how long it took.

Responsible for: the options, the exit status (0 only when every check held), and a clean end.
Must not: know the story; `story` does.
Called by: `scripts/demo`.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.lab.demo.caller import Caller
from tests.lab.demo.keeping import invite
from tests.lab.demo.story import Story
from tests.lab.demo.telling import StoryFault, Teller
from tests.lab.ending import AskedToEnd, end_on_signals
from tests.lab.gateway import GatewayProcess, start_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import LabFault

_INTERRUPTED = 128 + signal.SIGINT

_WHAT_IS_SHOWN = (
    "Every call is a POST to the gateway's URL; shown are its method and request, and the response "
    "or the error that came back, without the envelope around them. Tokens and private keys are "
    "left out."
)


def main() -> int:
    """Play the story; return the exit status."""
    options = _read_options()
    teller = Teller(colours=not options.plain and _may_colour())
    end_on_signals()
    try:
        _run(teller, setup_seconds=options.setup_seconds, keep=options.keep)
    except AskedToEnd:
        return _INTERRUPTED
    except (LabFault, StoryFault) as fault:
        teller.failed(str(fault))
        return 1
    return 0


def _run(teller: Teller, *, setup_seconds: int, keep: bool) -> None:
    teller.title("A relay gets its DNS record and its certificate")
    began = time.monotonic()
    with _lab_with_gateway() as (lab, gateway):
        ready = time.monotonic()
        _introduce(lab, teller)
        folder = lab.folder / "demo"
        folder.mkdir(mode=0o700)
        with closing(Caller(gateway.url, teller)) as caller:
            story = Story(lab, gateway.process.log_file, folder, caller, teller)
            try:
                story.play()
            except StoryFault as fault:
                # The log goes with the lab's folder.
                raise StoryFault(f"{fault}\n\n{gateway.process.log_tail()}") from None
        ended = time.monotonic()
        before = f"{setup_seconds} s setup, " if setup_seconds else ""
        teller.title(
            f"\nAll {teller.checks} checks held. {setup_seconds + ended - began:.1f} s in all: "
            f"{before}{ready - began:.1f} s to start the lab, {ended - ready:.1f} s for the story."
        )
        if keep:
            invite(lab, folder, story.client_token, teller)
            _wait_to_be_asked()


@contextmanager
def _lab_with_gateway() -> Iterator[tuple[Lab, GatewayProcess]]:
    """A lab with one gateway, whose log has the issuance's stages in a form for programs."""
    with running_lab(LabOptions(gateways=0, log_level="debug")) as lab:
        gateway = start_gateway(lab.config, environ={"GATEWAY_LOG__FORMAT": "json"})
        try:
            yield lab, gateway
        finally:
            gateway.stop()


def _introduce(lab: Lab, teller: Teller) -> None:
    teller.aside(_WHAT_IS_SHOWN)
    teller.details(
        [
            "",
            f"gateway  {lab.config.url}",
            "BIND     primary {}:{}, ".format(*lab.bind.primary)
            + "secondary {}:{}, ".format(*lab.bind.secondary)
            + f"zones {' and '.join(lab.bind.zones)}",
            f"Pebble   {lab.pebble.directory_url}",
            f"Redis    {lab.redis.url}",
        ]
    )


def _wait_to_be_asked() -> None:
    try:
        while True:
            signal.pause()
    except AskedToEnd:
        return


def _may_colour() -> bool:
    # https://no-color.org: set to anything but the empty string.
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Start Redis, BIND twice, Pebble and the gateway on loopback, play the "
        "service's story with real calls, and check every step of it.",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave it all running until ^C; print lines to try"
    )
    parser.add_argument(
        "--plain", action="store_true", help="no colours, as NO_COLOR or a pipe has it"
    )
    # How long scripts/setup took, which ran before; for the time in all.
    parser.add_argument("--setup-seconds", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
