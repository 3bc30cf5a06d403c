"""The examples of docs/examples, and the bytes that docs/clients.md shows, on the lab."""
