"""The gateway's private Redis on a real `redis-server`."""
