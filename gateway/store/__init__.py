"""Redis, the gateway's only state beside the zones: the connection, the keys, the scripts.

Knows no domain rule: the layers above say what a value means. The only importer of redis-py.
`store.connection` is the way to Redis, by `store.sending`; below it `store.routing` finds the
server that has a key, by `store.topology`, and `store.places` reads the URL. `store.embedded` is
the private server of a gateway that was given none, `store.persistence` what a Redis keeps when it
restarts.
"""
