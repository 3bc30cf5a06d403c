"""The whole service over HTTP, on real BIND, Pebble and Redis: what a client may rely on."""
