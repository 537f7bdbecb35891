"""Rewrites of what a script says into simpler programs: jumps, views of memory, bare calls."""
