"""Whole models and their tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "models",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("target", sa.String(1000), nullable=False),
        sa.Column("owner", sa.String(64), nullable=True),
        sa.Column("group_id", sa.Uuid(), nullable=False),
        sa.Column("num_steps", sa.Integer(), nullable=False),
        sa.Column("steps", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("group_id", name="uq_models_group_id"),
        sa.ForeignKeyConstraint(["target"], ["targets.name"], name="fk_models_target_targets"),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], name="fk_models_group_id_groups"),
    )
    op.create_index("ix_models_created_at_id", "models", ["created_at", "id"])
    op.create_table(
        "model_tasks",
        sa.Column("model_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("workload_key", sa.String(64), nullable=False),
        sa.Column("operators", sa.String(255), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("model_id", "number", name="pk_model_tasks"),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name="fk_model_tasks_model_id_models"),
        sa.ForeignKeyConstraint(
            ["workload_key"], ["workloads.key"], name="fk_model_tasks_workload_key_workloads"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_model_tasks_job_id_jobs"),
    )
    op.create_index("ix_model_tasks_workload_key", "model_tasks", ["workload_key"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("model_tasks")
    op.drop_table("models")
