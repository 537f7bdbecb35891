"""Relatives: other shapes of one operator, and what a search may learn from them."""
