"""The pure parts of `gateway.dns`: no socket is opened."""
