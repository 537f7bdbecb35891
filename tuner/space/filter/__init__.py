"""The static filter, and the canonical form of decisions that make the same program."""
