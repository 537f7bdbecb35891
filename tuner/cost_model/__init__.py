"""Cost models: which candidate will be faster, learned from measurements."""
