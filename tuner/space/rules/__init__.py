"""Schedule rules: each adds sketches to the design space of a program."""
