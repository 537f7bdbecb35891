"""The legality of primitives: dependences, coverage, reductions, threads."""
