"""Fast reading of lists and plots: an index of trials without traces, and the progress of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from compiler.ir.analysis.products import common_dtype
from compiler.script.error import ScriptError
from compiler.script.parser import parse
from tuner.loop.progress import Point, add_point

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index, add the columns, and fill in the progress of existing jobs."""
    op.create_index(
        "ix_trials_narrow",
        "trials",
        [
            "job_id",
            "number",
            "round",
            "sketch",
            "error",
            "best_secs",
            "predicted",
            "build_secs",
            "check_secs",
            "time_secs",
            "created_at",
        ],
    )
    op.add_column("jobs", sa.Column("progress", sa.JSON(none_as_null=True)))
    op.add_column("targets", sa.Column("peak_flops", sa.Double()))
    op.add_column("workloads", sa.Column("dtype", sa.String(16)))
    _fill_progress()
    _fill_dtypes()


def downgrade() -> None:
    """Drop what was added."""
    op.drop_column("workloads", "dtype")
    op.drop_column("targets", "peak_flops")
    op.drop_column("jobs", "progress")
    op.drop_index("ix_trials_narrow", table_name="trials")


def _fill_progress() -> None:
    jobs = sa.table("jobs", sa.column("id", sa.Uuid), sa.column("progress", sa.JSON))
    trials = sa.table(
        "trials",
        sa.column("job_id", sa.Uuid),
        sa.column("number", sa.Integer),
        sa.column("best_secs", sa.Double),
    )
    connection = op.get_bind()
    for (job_id,) in connection.execute(sa.select(jobs.c.id)).all():
        found = connection.execute(
            sa.select(trials.c.best_secs).where(trials.c.job_id == job_id).order_by(trials.c.number)
        )
        points: list[Point] = []
        for place, (secs,) in enumerate(found, 1):
            if secs is not None:
                points = add_point(points, place, secs)
        if points:
            connection.execute(sa.update(jobs).where(jobs.c.id == job_id).values(progress=points))


def _fill_dtypes() -> None:
    workloads = sa.table(
        "workloads",
        sa.column("key", sa.String),
        sa.column("script", sa.Text),
        sa.column("dtype", sa.String),
    )
    connection = op.get_bind()
    for key, text in connection.execute(sa.select(workloads.c.key, workloads.c.script)).all():
        try:
            dtype = common_dtype(parse(text))
        except ScriptError:
            continue  # no longer a program
        connection.execute(sa.update(workloads).where(workloads.c.key == key).values(dtype=dtype))
