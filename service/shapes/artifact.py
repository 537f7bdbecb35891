"""The artifact of a search over ranges: its kernels with their dispatcher, compiled."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.orm import Session

from compiler.driver import toolchain
from compiler.target.target import Target
from service.common.errors import ServiceNotFoundError
from service.schedules.kernel_builder import ModuleRequest
from service.store import shapes


@dataclass(frozen=True)
class ShapesArtifact:
    """An artifact to build; `key` is a digest of everything that it depends on."""

    key: str
    workload_key: str
    request: ModuleRequest


def plan_artifact(session: Session, shapes_id: UUID) -> ShapesArtifact:
    """Return the artifact of a search, without building it.

    Raises:
        ServiceNotFoundError: If there is no such search, or its kernels are not chosen yet.
    """
    row = shapes.get(session, shapes_id, whole=True)
    if row.outcome is None:
        raise ServiceNotFoundError(
            f"the search over ranges {shapes_id} has no kernels: {row.error}"
            if row.error
            else f"the search over ranges {shapes_id} has no kernels yet",
            advice="" if row.error else "they are chosen when its last job has ended",
        )
    module: str = row.outcome["module"]
    parts = [row.workload_key, row.target, toolchain(Target(row.target).kind), module]
    return ShapesArtifact(
        key=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        workload_key=row.workload_key,
        request=ModuleRequest(module, row.target),
    )
