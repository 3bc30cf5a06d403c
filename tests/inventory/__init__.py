"""What an install is made of, and what is known against it; `scripts/audit` runs it."""
