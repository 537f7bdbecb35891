"""Find and replace nodes of a program."""
