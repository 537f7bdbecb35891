"""The error of a program that can't be lowered."""


class LoweringError(Exception):
    """A program that no pass may turn into loops: it would not mean what it says."""
