"""The operator and the shape of workloads, and the warm starts of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from compiler.script.error import ScriptError
from compiler.script.parser import parse
from tuner.transfer.shape import shape_of

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, fill them for existing workloads, and create the table."""
    op.add_column("workloads", sa.Column("operator_key", sa.String(64)))
    op.add_column("workloads", sa.Column("shape", sa.JSON(none_as_null=True)))
    op.create_index("ix_workloads_operator_key", "workloads", ["operator_key"])
    op.create_index("ix_jobs_workload_key_target", "jobs", ["workload_key", "target"])
    op.create_table(
        "warm_starts",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("cost_model_id", sa.Integer()),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_warm_starts_job_id"),
        sa.ForeignKeyConstraint(
            ["cost_model_id"], ["cost_models.id"], name="fk_warm_starts_cost_model_id"
        ),
        sa.PrimaryKeyConstraint("job_id", name="pk_warm_starts"),
    )
    op.create_table(
        "warm_candidates",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("candidate_key", sa.String(64), nullable=False),
        sa.Column("sketch", sa.String(255), nullable=False),
        sa.Column("trace", sa.JSON(), nullable=False),
        sa.Column("distance", sa.Double(), nullable=False),
        sa.Column("source_job_id", sa.Uuid(), nullable=False),
        sa.Column("source_number", sa.Integer(), nullable=False),
        sa.Column("source_rank", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"], ["warm_starts.job_id"], name="fk_warm_candidates_job_id"
        ),
        sa.ForeignKeyConstraint(
            ["source_job_id", "source_number"],
            ["trials.job_id", "trials.number"],
            name="fk_warm_candidates_source_job_id_source_number",
        ),
        sa.PrimaryKeyConstraint("job_id", "position", name="pk_warm_candidates"),
    )
    _fill_shapes()


def downgrade() -> None:
    """Drop what was added."""
    op.drop_table("warm_candidates")
    op.drop_table("warm_starts")
    op.drop_index("ix_jobs_workload_key_target", table_name="jobs")
    op.drop_index("ix_workloads_operator_key", table_name="workloads")
    op.drop_column("workloads", "shape")
    op.drop_column("workloads", "operator_key")


def _fill_shapes() -> None:
    workloads = sa.table(
        "workloads",
        sa.column("key", sa.String),
        sa.column("script", sa.Text),
        sa.column("operator_key", sa.String),
        sa.column("shape", sa.JSON(none_as_null=True)),
    )
    connection = op.get_bind()
    for key, text in connection.execute(sa.select(workloads.c.key, workloads.c.script)).all():
        try:
            shape = shape_of(parse(text))
        except ScriptError:
            continue  # no longer a program: it has no relatives
        connection.execute(
            sa.update(workloads)
            .where(workloads.c.key == key)
            .values(operator_key=shape.operator, shape=shape.to_json())
        )
