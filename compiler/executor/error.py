"""The errors of artifacts, of packages and of calls."""

from __future__ import annotations


class ArgumentError(TypeError):
    """Arrays that do not fit the parameters of a kernel or a model."""


class ShapeError(ArgumentError):
    """Arrays whose sizes a kernel of symbolic extents does not take: out of its range, or apart."""


class ArtifactError(ValueError):
    """A file that is not an artifact, or an artifact for another kind of machine."""


class MachineError(ArtifactError):
    """An artifact for another kind of machine than this one."""


class UnknownFunctionError(ArtifactError):
    """A program or a kernel calls a function that is not registered, or of a missing library."""


class LibraryCallError(RuntimeError):
    """A registered function failed while a kernel called it; `__cause__` is its error.

    Attributes:
        function: The name that it is registered by.
    """

    def __init__(self, message: str, function: str) -> None:
        super().__init__(message)
        self.function = function


class PackageError(ValueError):
    """A file that is no package of a model, is damaged, or is for another kind of machine."""
