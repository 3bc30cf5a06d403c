"""Real gateway processes, killed and stopped for real, on the real BIND, Pebble and Redis."""
