"""Trials packed into columns, beside the trials: what plots of large jobs read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; new trials fill it, and unpacked trials are read one by one."""
    op.create_table(
        "packed_trials",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("sketches", sa.JSON(), nullable=False),
        sa.Column("outcomes", sa.JSON(), nullable=False),
        sa.Column("trials", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "first", name="pk_packed_trials"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_packed_trials_job_id_jobs"),
    )


def downgrade() -> None:
    """Drop the table, which repeats the trials."""
    op.drop_table("packed_trials")
