"""The zones: whose record a name carries, changing it by compare-and-swap, and the challenges.

The zone is the truth here, never a database: every decision is a pure function over what one signed
answer of the zone's primary said (`observe`, `proof`, `plan`), and every change is one RFC 2136
UPDATE whose prerequisites repeat what the decision was based on (`update`, `settle`). Knows no
HTTP, no Redis and no policy. Called by `holdings` and `certificates` through `Publisher`,
`Challenges`, `Propagation` and `health`, built by the composition root.
"""
