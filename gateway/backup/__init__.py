"""Backups: everything that the gateway keeps in Redis, in one sealed file, and back again."""
