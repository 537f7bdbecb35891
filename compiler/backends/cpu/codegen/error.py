"""The error of a program that the code generator refuses."""


class CodegenError(Exception):
    """A legal program for which no code is generated, such as one that is too large."""
