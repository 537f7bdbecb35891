"""Run packaged models and kernels: NumPy and ctypes only, without a compiler.

The wheel `loopwright-runtime` is this folder under the name `loopwright_runtime`, so its imports
are relative.
"""

from .artifact import Artifact
from .error import ArgumentError, ArtifactError, PackageError, ShapeError
from .executor import Executor
from .kernel import LoadedKernel
from .loading import load, load_kernel, load_kernels
from .package import Package, read_package

__all__ = [
    "ArgumentError",
    "Artifact",
    "ArtifactError",
    "Executor",
    "LoadedKernel",
    "Package",
    "PackageError",
    "ShapeError",
    "load",
    "load_kernel",
    "load_kernels",
    "read_package",
]
