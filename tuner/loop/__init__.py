"""The tuning loop: rounds, shared budgets, progress."""
