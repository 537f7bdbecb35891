"""Data of lists and plots: trials as columns, and their statistics."""
