"""`python -m gateway`: the same as the command `gateway`."""

from gateway.cli import main

main()
