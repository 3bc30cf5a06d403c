"""The program behind `scripts/lab`: a lab until SIGTERM or ^C.

Responsible for: the options, the one JSON line on standard output, and a clean end.
Must not: print anything else to standard output; programs read it.
Called by: `scripts/lab`.
"""

import argparse
import json
import signal
import sys

from tests.lab.ending import AskedToEnd, end_on_signals
from tests.lab.lab import LabOptions, running_lab
from tests.lab.process import LabFault


def main() -> int:
    """Run the lab; return the exit status."""
    options = _read_options()
    end_on_signals()
    try:
        with running_lab(options) as lab:
            sys.stdout.write(f"{json.dumps(lab.describe())}\n")
            sys.stdout.flush()
            while True:
                signal.pause()
    except AskedToEnd:
        return 0
    except LabFault as fault:
        sys.stderr.write(f"lab: {fault}\n")
        return 1


def _read_options() -> LabOptions:
    parser = argparse.ArgumentParser(
        prog="scripts/lab",
        description="Start Redis, BIND twice, Pebble and the gateway on loopback; print one JSON "
        "line when all is ready; stop everything at SIGTERM or ^C.",
    )
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument(
        "--gateways", type=_count, default=1, metavar="N", help="that many gateway processes"
    )
    how_many.add_argument(
        "--no-gateway",
        dest="gateways",
        action="store_const",
        const=0,
        help="only the servers; the configuration is written, for a gateway started by hand",
    )
    parser.add_argument(
        "--acme-env",
        type=_setting,
        action="append",
        default=[],
        metavar="K=V",
        help="an environment variable for Pebble (repeatable), such as PEBBLE_AUTHZREUSE=0",
    )
    parser.add_argument(
        "--acme-validity",
        type=_count,
        metavar="SECONDS",
        help="how long issued certificates are valid, where Pebble can be told",
    )
    options = parser.parse_args()
    return LabOptions(options.gateways, dict(options.acme_env), options.acme_validity)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError("NAME=VALUE expected")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
