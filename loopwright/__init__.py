"""Loopwright: an autotuner for tensor programs."""
