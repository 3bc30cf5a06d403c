"""The bench: how fast the product is, how much of it fits on a machine, and what it stands.

Each bench starts a lab of its own on loopback (Redis, BIND, Pebble, gateways), stocks it with
holdings (`stocking`), calls it, and makes a report of figures and faults. `soak`, `calls` and
`pages` have one module each; the others are the table in `rows`, each beside a reference in the
same run (`comparing`). Begin with `rows`, then `ready`: the shape that all of those have.
`bursts`, `asking`, `visits` and `load` are the ways to call; `watching` and `spending` look at what
it takes; `reporting`, `document` and `plots` show it; `program` holds it together.
Must not: change the gateway; what is found is a figure or a fault in a report.
Called by: `scripts/bench` (this package's `__main__`), its own tests.
"""
