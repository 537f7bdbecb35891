"""The error of a program that can't be lowered."""

from typing import ClassVar

from compiler.error_codes import BuildErrorCode


class LoweringError(Exception):
    """A program that a pass can't turn into loops without changing its meaning."""

    code: ClassVar[BuildErrorCode] = "lowering"
