"""Data of lists and plots: trials as columns, and statistics of them."""
