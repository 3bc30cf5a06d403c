"""The gateway: publishes address records and issues certificates for exact hostnames."""

__version__ = "0.1.0"
