"""Libraries that were timed beside the best kernel of a job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "baselines",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("library", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(255), nullable=False),
        sa.Column("run_secs", sa.Double(), nullable=False),
        sa.Column("kernel_secs", sa.Double(), nullable=False),
        sa.Column("speedup", sa.Double(), nullable=False),
        sa.Column("low", sa.Double()),
        sa.Column("high", sa.Double()),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("toolchain", sa.String(255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_baselines_job_id"),
        sa.PrimaryKeyConstraint("job_id", "library", name="pk_baselines"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("baselines")
