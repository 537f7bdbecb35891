"""The command line, `loopwright COMMAND`: one command a file."""
