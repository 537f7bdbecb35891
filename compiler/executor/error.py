"""The errors of artifacts, of packages and of calls."""

from __future__ import annotations


class ArgumentError(TypeError):
    """Arrays that do not fit the parameters of a kernel or a model."""


class ShapeError(ArgumentError):
    """Arrays whose sizes a kernel of symbolic extents does not take: out of its range, or apart."""


class ArtifactError(ValueError):
    """A file that is not an artifact, or an artifact for another kind of machine."""


class PackageError(ValueError):
    """A file that is no package of a model, is damaged, or is for another kind of machine."""
