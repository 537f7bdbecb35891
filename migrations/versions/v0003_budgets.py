"""Further limits, stop reasons and finalists of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and create the table."""
    op.add_column("jobs", sa.Column("seconds", sa.Double()))
    op.add_column("jobs", sa.Column("plateau", sa.Integer()))
    op.add_column("jobs", sa.Column("rules", sa.JSON(none_as_null=True)))
    op.add_column("jobs", sa.Column("stop_reason", sa.String(32)))
    op.add_column("jobs", sa.Column("best_low_secs", sa.Double()))
    op.add_column("jobs", sa.Column("best_high_secs", sa.Double()))
    op.add_column(
        "jobs", sa.Column("active_secs", sa.Double(), nullable=False, server_default=sa.text("0"))
    )
    op.add_column("jobs", sa.Column("active_at", sa.DateTime(timezone=True)))
    op.add_column("best_schedules", sa.Column("low_secs", sa.Double()))
    op.add_column("best_schedules", sa.Column("high_secs", sa.Double()))
    op.create_table(
        "finals",
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("run_secs", sa.Double()),
        sa.Column("low_secs", sa.Double()),
        sa.Column("high_secs", sa.Double()),
        sa.Column("rounds", sa.JSON(), nullable=False),
        sa.Column("error", sa.String(32)),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("workers", sa.JSON(), nullable=False),
        sa.Column("toolchain", sa.String(255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id", "number"],
            ["trials.job_id", "trials.number"],
            name="fk_finals_job_id_number",
        ),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_finals"),
    )


def downgrade() -> None:
    """Drop what was added."""
    op.drop_table("finals")
    op.drop_column("best_schedules", "high_secs")
    op.drop_column("best_schedules", "low_secs")
    for name in (
        "active_at",
        "active_secs",
        "best_high_secs",
        "best_low_secs",
        "stop_reason",
        "rules",
        "plateau",
        "seconds",
    ):
        op.drop_column("jobs", name)
