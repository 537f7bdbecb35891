"""The artifacts of the latest candidates: a finalist of a short search is not built again."""

from __future__ import annotations

from compiler.bounded_cache import BoundedCache
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.target.target import Target
from workers.measure.compare import Build

MAX_ARTIFACTS = 32
"""The candidates of two rounds of a search. Chosen."""


class BuildCache:
    """Builds candidates, and keeps the artifacts of the latest.

    Args:
        build: Makes the artifact of a candidate.
    """

    def __init__(self, build: Build) -> None:
        self._build = build
        self._func: PrimFunc | None = None
        self._artifacts: BoundedCache[tuple[str, str], Artifact] = BoundedCache(MAX_ARTIFACTS)

    def __call__(self, func: PrimFunc, trace: str, target: Target) -> Artifact:
        """Return the artifact of a candidate; errors are those of `build`, and are not kept."""
        artifacts = self._artifacts_of(func)
        key = (trace, target.name)
        artifact = artifacts.get(key)
        if artifact is None:
            artifact = self._build(func, trace, target)
            artifacts.put(key, artifact)
        return artifact

    def keep(self, func: PrimFunc, trace: str, target: Target, artifact: Artifact) -> None:
        """Keep the artifact of a candidate that another process built."""
        self._artifacts_of(func).put((trace, target.name), artifact)

    def _artifacts_of(self, func: PrimFunc) -> BoundedCache[tuple[str, str], Artifact]:
        if func is not self._func:
            self._artifacts = BoundedCache(MAX_ARTIFACTS)
            self._func = func
        return self._artifacts
