"""Labels of decisions, once a sketch, and the numbers that each trial decided."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op

from compiler.schedule.trace.trace_json import decided_numbers
from tuner.space.tables.labels import stored_labels

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_ROWS = 500
"""Read at a time: traces are kilobytes."""
_JOBS = sa.table("jobs", sa.column("id", sa.Uuid), sa.column("workload_key", sa.String))
_WORKLOADS = sa.table("workloads", sa.column("key", sa.String), sa.column("script", sa.Text))
_TRIALS = sa.table(
    "trials",
    sa.column("job_id", sa.Uuid),
    sa.column("number", sa.Integer),
    sa.column("sketch", sa.String),
    sa.column("trace", sa.JSON),
    sa.column("decisions", sa.JSON),
)


def upgrade() -> None:
    """Add the table and the column, and fill both from the traces."""
    sketches = op.create_table(
        "sketches",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "name", name="pk_sketches"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_sketches_job_id_jobs"),
    )
    op.add_column(
        "trials", sa.Column("decisions", sa.JSON(), nullable=False, server_default=sa.text("'[]'"))
    )
    is_of_job = _WORKLOADS.c.key == _JOBS.c.workload_key
    jobs = sa.select(_JOBS.c.id, _WORKLOADS.c.script).where(is_of_job)
    for job_id, script in op.get_bind().execute(jobs).all():
        traces = _fill_decisions(job_id)
        rows = [
            {"job_id": job_id, "name": name, "labels": stored_labels(trace, script)}
            for name, trace in traces.items()
        ]
        op.bulk_insert(sketches, rows)


def downgrade() -> None:
    """Drop what repeats the traces."""
    op.drop_column("trials", "decisions")
    op.drop_table("sketches")


def _fill_decisions(job_id: UUID) -> dict[str, dict[str, Any]]:
    """Write the decisions of a job's trials, and return the first trace of each sketch."""
    connection = op.get_bind()
    columns = (_TRIALS.c.number, _TRIALS.c.sketch, _TRIALS.c.trace)
    query = sa.select(*columns).where(_TRIALS.c.job_id == job_id).order_by(_TRIALS.c.number)
    update = (
        sa.update(_TRIALS)
        .where(_TRIALS.c.job_id == job_id, _TRIALS.c.number == sa.bindparam("of_number"))
        .values(decisions=sa.bindparam("decided"))
    )
    traces: dict[str, dict[str, Any]] = {}
    last = -1
    while rows := connection.execute(query.where(_TRIALS.c.number > last).limit(_ROWS)).all():
        for _, sketch, trace in rows:
            traces.setdefault(sketch, trace)
        decided = [{"of_number": row[0], "decided": decided_numbers(row[2])} for row in rows]
        connection.execute(update, decided)
        last = rows[-1][0]
    return traces
