"""The whole service over HTTP: real gateways, BIND, Pebble and Redis."""
