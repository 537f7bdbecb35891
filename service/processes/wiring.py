"""Assemble the coordinator: the one module that imports both the tuner and the workers."""

from __future__ import annotations

from functools import partial

from compiler.backends.backend import host_labels
from service.coordinator.coordinator import Coordinator
from service.coordinator.measurer import WorkerMeasurer
from service.demo.player import Player
from service.learning.retrain import Retrainer
from service.processes.engine_supervisor import EngineSupervisor
from service.store.database.database import Database
from workers.engine.dask_engine import DaskEngine
from workers.engine.engine import ClusterAddress


def coordinate(
    database: Database,
    num_workers: int,
    *,
    plays: bool = False,
    cluster: ClusterAddress | None = None,
) -> tuple[EngineSupervisor, Coordinator]:
    """Return embedded workers and a coordinator that uses them; neither has started.

    Args:
        cluster: Use the workers of a cluster instead.
        plays: Queue a replay of each job of the store, instead of measuring.
    """
    if cluster is None:
        embed = partial(DaskEngine.embedded, num_workers=num_workers)
        workers = EngineSupervisor(database, embed, labels=host_labels())
    else:
        connect = partial(DaskEngine.connected, cluster)
        workers = EngineSupervisor(database, connect, stays=True)
    measurer = WorkerMeasurer(workers)
    coordinator = Coordinator(
        database,
        measurer,
        baselines=measurer,
        interrupt=workers.interrupt,
        retrainer=Retrainer(database),
        serves=workers.labels,
        prove=workers.prove,
    )
    if plays:
        player = Player(database, coordinator.owner, coordinator.driver)
        player.submit_all()
        coordinator.driver = player
    return workers, coordinator
