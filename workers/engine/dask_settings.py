"""The configuration of Dask in each of our processes."""

from __future__ import annotations

SETTINGS: dict[str, object] = {
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,  # there are no tasks
    # Work beside the child disturbs its timing.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    # Each stream would keep its last thousand messages: megabytes for each worker.
    "distributed.admin.low-level-log-length": 0,
    # Serve no diagnostics over plain HTTP.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Otherwise these would be set in this process.
    "distributed.nanny.pre-spawn-environ": {},
}
