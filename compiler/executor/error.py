"""The errors of packages and of calls."""

from __future__ import annotations


class ArgumentError(TypeError):
    """Arrays that do not fit the parameters of a kernel or a model."""


class PackageError(ValueError):
    """A file that is no package of a model, is damaged, or is for another kind of machine."""
