"""Features of candidates, from tables alone."""
