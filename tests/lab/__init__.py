"""The lab: real BIND, Pebble, Redis and gateway processes on loopback, for tests and scripts.

Responsible for: starting every part on free ports in a folder of its own and stopping exactly what
it started. Must not: import the gateway's code; the gateway is one more program here.
Called by: `tests/conftest.py`, `scripts/lab` (this package's `__main__`), `scripts/demo`.
"""
