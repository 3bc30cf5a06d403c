"""HTTP: envelopes in, envelopes out, and health. Knows no DNS, no ACME and no Redis."""
