"""Assemble the coordinator: the one module that imports both the tuner and the workers."""

from __future__ import annotations

from functools import partial

from compiler.backends.backend import cores_by_label
from service.common import request_ids
from service.coordinator.coordinator import Coordinator, SharedParts
from service.coordinator.coordinators import Coordinators
from service.coordinator.measurer import WorkerMeasurer
from service.demo.player import Player
from service.learning.retrain import Retrainer
from service.processes.engine_seat import EngineSeat
from service.processes.engine_supervisor import EngineSupervisor
from service.store.database.database import Database
from workers.engine.dask_engine import DaskEngine
from workers.engine.engine import ClusterAddress


def coordinate(
    database: Database,
    num_workers: int,
    *,
    num_jobs: int = 1,
    plays: bool = False,
    cluster: ClusterAddress | None = None,
) -> tuple[EngineSupervisor, Coordinators]:
    """Return embedded workers and coordinators that use them; none has started.

    Args:
        num_jobs: The number of jobs to run at a time; more than one only with a cluster.
        cluster: Use the workers of a cluster instead.
        plays: Queue a replay of each job of the store, instead of measuring.
    """
    if cluster is not None:
        connect = partial(DaskEngine.connected, cluster)
        workers = EngineSupervisor(database, connect, stays=True)
        seats: list[EngineSeat | EngineSupervisor] = [EngineSeat(workers) for _ in range(num_jobs)]
    else:
        embed = partial(DaskEngine.embedded, num_workers=num_workers)
        workers = EngineSupervisor(database, embed, labels=cores_by_label().keys())
        seats = [workers]
    retrainer, shared = Retrainer(database), SharedParts(database)
    coordinators = []
    for seat in seats:
        measurer = WorkerMeasurer(seat, request_id=request_ids.current)
        coordinator = Coordinator(
            database,
            measurer,
            baselines=measurer,
            interrupt=seat.interrupt,
            stand=seat.stand,
            share=seat.share,
            retrainer=retrainer,
            serves=workers.labels,
            prove=workers.prove,
            shared=shared,
            overlaps=num_jobs > 1,
        )
        coordinators.append(coordinator)
    if plays:
        [coordinator] = coordinators
        player = Player(database, coordinator.owner, coordinator.driver)
        player.submit_all()
        coordinator.driver = player
    return workers, Coordinators(coordinators)
