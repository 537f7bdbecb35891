"""Interpreters that run programs without compiling them: the evaluator and the oracle."""
