"""The evaluator: the plain meaning of a program, one scalar at a time."""
