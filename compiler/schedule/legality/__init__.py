"""What makes a primitive legal: dependences, coverage, reductions, threads."""
