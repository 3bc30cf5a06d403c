"""The bench: one real gateway under load on loopback, and the figures of it.

Responsible for: stocking a lab with many holdings, calling from several processes, watching the
gateway meanwhile, and judging what was seen. Bounded in count and time.
Must not: change the gateway; what it finds is a figure or a fault in a report.
Called by: `scripts/bench` (this package's `__main__`), its own tests.
"""
