"""The errors of backends."""

from __future__ import annotations

from compiler.error_codes import BuildErrorCode
from compiler.user_errors import NoResultError


class BuildError(NoResultError):
    """A program for which no kernel can be built, and why.

    Attributes:
        code: What is wrong, as one of `compiler.error_codes.BUILD_ERROR_CODES`.
    """

    def __init__(self, message: str, code: BuildErrorCode) -> None:
        super().__init__(message, code)
        self.code: BuildErrorCode = code

    def __str__(self) -> str:
        return str(self.args[0])


class KernelFaultError(Exception):
    """A kernel does something wrong when it runs, such as a race or an access out of bounds."""


class DeviceFaultError(KernelFaultError):
    """A kernel that made its device unusable for this process, such as an illegal address.

    No later call of the process on the device succeeds: the process must end.
    """
