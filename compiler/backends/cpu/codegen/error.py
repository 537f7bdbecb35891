"""The error for programs that the code generator refuses."""

from typing import ClassVar

from compiler.error_codes import BuildErrorCode


class CodegenError(Exception):
    """A legal program for which no code is generated, such as one that is too large."""

    code: ClassVar[BuildErrorCode] = "codegen"
