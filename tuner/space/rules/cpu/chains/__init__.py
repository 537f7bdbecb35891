"""Rules for chains of blocks that are scheduled together, row by row."""
