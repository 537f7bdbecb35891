"""The static filter, and decisions that make the same program."""
