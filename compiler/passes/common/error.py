"""The error of a program that can't be lowered."""


class LoweringError(Exception):
    """A program that a pass can't turn into loops without changing its meaning."""
