"""Where the tuner meets the workers: the one module that imports both, and all they need."""

from __future__ import annotations

from service.coordinator import Coordinator
from service.embedded import EmbeddedWorkers
from service.measurer import WorkerMeasurer
from service.retrain import Retrainer
from service.store.database import Database
from workers.dask_engine import DaskEngine


def coordinate(database: Database, num_workers: int) -> tuple[EmbeddedWorkers, Coordinator]:
    """Return embedded workers and a coordinator over them; neither has started."""
    workers = EmbeddedWorkers(database, lambda: DaskEngine.embedded(num_workers=num_workers))
    coordinator = Coordinator(
        database,
        WorkerMeasurer(workers),
        interrupt=workers.interrupt,
        retrainer=Retrainer(database),
    )
    return workers, coordinator
