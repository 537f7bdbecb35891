"""Checks of large results by exact rows and by sums of columns with random signs."""
