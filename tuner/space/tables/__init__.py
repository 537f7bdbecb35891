"""Sketches and their tables: knobs, nests, batches of decisions."""
