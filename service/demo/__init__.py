"""A demo: recorded jobs, and a replay of them at their original pace."""
