"""Certificates: the issuance, its key material, its certificate authority, and what is sealed."""
