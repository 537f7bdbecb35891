"""A demo: recorded jobs, some of which run before one's eyes."""
