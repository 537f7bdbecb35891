"""The error of a program for which no code can be made."""


class CodegenError(Exception):
    """A legal program that the code generator refuses: it is too large, or not bounded."""
