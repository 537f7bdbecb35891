"""The error of a program that is not legal."""

from compiler.error_codes import VerifyErrorCode
from compiler.user_errors import UsageError


class VerifyError(UsageError, ValueError):
    """A program that is not legal.

    Attributes:
        message: What is wrong.
        node: The illegal node.
        code: What is wrong, as one of `compiler.error_codes.VERIFY_ERROR_CODES`.
    """

    def __init__(self, message: str, node: object, code: VerifyErrorCode) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.code: VerifyErrorCode = code
