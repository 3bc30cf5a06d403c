"""Redis, the gateway's only state beside the zones: the connection, the keys, the scripts.

Knows no domain rule: the layers above say what a value means. The only importer of redis-py.
`store.connection` is the way to Redis, `store.embedded` the private server of a gateway that was
given none, `store.persistence` what a Redis keeps when it restarts.
"""
