"""A scheduler and the workers of this host, which listen on loopback."""

from __future__ import annotations

import logging
from typing import Any

from distributed import Nanny, Scheduler, SpecCluster
from distributed.deploy.cluster import Cluster
from distributed.security import Security

from workers.engine.batch_exchange import EXTENSIONS
from workers.engine.host_workers import host_workers

_LOOPBACK = "127.0.0.1"


class LocalCluster(SpecCluster):
    """The workers of this host and their scheduler.

    Args:
        num_workers: The number of workers for the CPU.
    """

    def __init__(self, num_workers: int) -> None:
        security = Security.temporary()
        common = {"host": _LOOPBACK, "security": security, "protocol": "tls://"}
        # There is no dashboard, yet Dask opens a port for it: at least any port.
        scheduler = {
            **common,
            "port": 0,
            "dashboard": False,
            "dashboard_address": f"{_LOOPBACK}:0",
            "extensions": EXTENSIONS,
        }
        quiet = {**common, "silence_logs": logging.ERROR}
        super().__init__(  # type: ignore[no-untyped-call]
            workers={
                worker.name: {"cls": Nanny, "options": {**quiet, **worker.nanny_options}}
                for worker in host_workers(num_workers)
            },
            scheduler={"cls": Scheduler, "options": scheduler},
            security=security,
            silence_logs=logging.ERROR,
        )

    def _update_worker_status(self, op: str, msg: Any) -> None:
        """Record that a worker came or went.

        A `SpecCluster` would also end the nanny of a worker that is missing 15 s after it was lost.
        The nanny may be replacing it just then, for the second time or on a busy host, and without
        the nanny no worker ever returns.
        """
        Cluster._update_worker_status(self, op, msg)
