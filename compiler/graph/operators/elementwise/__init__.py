"""Operators that compute each element of the result from one of each operand."""
