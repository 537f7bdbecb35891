"""A candidate that was compiled in another child than the one that measures it."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

from compiler.executor.artifact import Artifact


@dataclass(frozen=True, slots=True)
class BuiltCandidate:
    """The artifact of a candidate.

    Attributes:
        artifact: The bytes of `Artifact.to_bytes` as base64 text; the runner passes them on unread.
        build_secs: The time that the build took.
    """

    artifact: str
    build_secs: float

    @classmethod
    def of(cls, artifact: Artifact, build_secs: float) -> BuiltCandidate:
        """Return an artifact in its form on the wire."""
        return cls(base64.b64encode(artifact.to_bytes()).decode(), build_secs)

    def load(self) -> Artifact:
        """Return the artifact.

        Raises:
            ArtifactError: If it is damaged.
            ValueError: If the text is not base64.
        """
        return Artifact.from_bytes(base64.b64decode(self.artifact, validate=True))

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> BuiltCandidate:
        """Read what `asdict` made, in a process that is not trusted.

        Raises:
            KeyError, TypeError, ValueError: If it is no such object.
        """
        artifact, build_secs = obj["artifact"], obj["build_secs"]
        if not isinstance(artifact, str):
            raise TypeError(f"an artifact is {artifact!r:.50}: expected text")
        if not isinstance(build_secs, float) or not 0 <= build_secs < math.inf:
            raise ValueError(f"build_secs is {build_secs!r:.50}: expected 0 or more")
        return cls(artifact, build_secs)
