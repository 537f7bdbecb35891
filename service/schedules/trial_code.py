"""The code of a trial. Independent of HTTP."""

from __future__ import annotations

from uuid import UUID

from service.schedules.kernel_builder import KernelBuilder, KernelRequest
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.trials import trials
from service.store.workloads import WorkloadRow
from service.wire.models import TrialCode


def show_code(database: Database, builder: KernelBuilder, job_id: UUID, number: int) -> TrialCode:
    """Return the texts of a trial, from the program to the assembly.

    Raises:
        ServiceNotFoundError: If the trial does not exist.
        UnprocessableError: If the compiler refuses the trial, as it did when the trial was
            measured.
        BuildFailedError: If the compiler crashes, or takes too long.
        ServiceBusyError: If too many kernels wait to be built.
    """
    with database.read() as session:
        trace = trials.get(session, job_id, number).trace
        job = jobs.get(session, job_id)
        script = session.get_one(WorkloadRow, job.workload_key).script
    texts = builder.show(KernelRequest(script, trace, job.target))
    return TrialCode(before=script, **texts)
