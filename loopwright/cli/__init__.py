"""The command line: `loopwright serve | tune | best | jobs | trials`, one command a file."""
