"""An ONNX model of a published package, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class ModelFile:
    """A model of a package.

    Attributes:
        path: The file in the package.
        shapes: The shapes of inputs with symbolic axes.
        fixed: The values of inputs that others follow from.
        refusal: A part of the error, if the model is not supported.
    """

    path: str
    shapes: Shapes = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Package:
    """A package of a registry.

    Attributes:
        name: Its name.
        version: The version.
        sha256: The hash of the file that is downloaded.
        models: Its models that no other package of the list has.
        registry: "pypi", "npm", or "installed" if the tests depend on the package.
    """

    name: str
    version: str
    sha256: str
    models: tuple[ModelFile, ...]
    registry: str = "pypi"
