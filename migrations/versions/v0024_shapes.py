"""Searches over ranges of sizes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "shapes",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("target", sa.String(1000), nullable=False),
        sa.Column("owner", sa.String(64), nullable=True),
        sa.Column("group_id", sa.Uuid(), nullable=False),
        sa.Column("workload_key", sa.String(64), nullable=False),
        sa.Column("script", sa.Text(), nullable=False),
        sa.Column("ranges", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.Column("num_kernels", sa.Integer(), nullable=True),
        sa.Column("loss", sa.Double(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_shapes"),
        sa.UniqueConstraint("group_id", name="uq_shapes_group_id"),
        sa.ForeignKeyConstraint(["target"], ["targets.name"], name="fk_shapes_target_targets"),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], name="fk_shapes_group_id_groups"),
    )
    op.create_index("ix_shapes_created_at_id", "shapes", ["created_at", "id"])
    op.create_table(
        "shape_sizes",
        sa.Column("shapes_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sizes", sa.JSON(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("shapes_id", "number", name="pk_shape_sizes"),
        sa.ForeignKeyConstraint(
            ["shapes_id"], ["shapes.id"], name="fk_shape_sizes_shapes_id_shapes"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_shape_sizes_job_id_jobs"),
    )
    op.create_table(
        "shape_timings",
        sa.Column("shapes_id", sa.Uuid(), nullable=False),
        sa.Column("task_key", sa.String(64), nullable=False),
        sa.Column("candidate_key", sa.String(64), nullable=False),
        sa.Column("sizes", sa.JSON(), nullable=True),
        sa.Column("sketch", sa.String(255), nullable=False),
        sa.Column("trace", sa.JSON(), nullable=False),
        sa.Column("measurement", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("shapes_id", "task_key", "candidate_key", name="pk_shape_timings"),
        sa.ForeignKeyConstraint(
            ["shapes_id"], ["shapes.id"], name="fk_shape_timings_shapes_id_shapes"
        ),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("shape_timings")
    op.drop_table("shape_sizes")
    op.drop_table("shapes")
