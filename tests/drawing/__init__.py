"""Draws the issuance machine for `docs/architecture.md`: see `exploring` and `mermaid`."""
