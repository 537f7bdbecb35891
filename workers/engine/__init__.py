"""The engine: it spreads candidates over worker processes and hosts."""
