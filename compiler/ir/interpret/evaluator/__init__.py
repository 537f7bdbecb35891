"""The evaluator: the reference semantics of programs, one scalar at a time."""
