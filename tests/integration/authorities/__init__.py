"""Several authorities, their budgets, and renewal as they ask for it."""
