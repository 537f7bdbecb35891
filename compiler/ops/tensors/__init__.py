"""Operators on tensors: the output of one is an input of the next."""
