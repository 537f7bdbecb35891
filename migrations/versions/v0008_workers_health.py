"""The health of workers over time: samples of a canary, and what was lost with a worker."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_COUNTS = ("jobs_lost", "restarts")


def upgrade() -> None:
    """Add the losses of workers, and the samples, which outlast their workers."""
    for name in _COUNTS:
        column = sa.Column(name, sa.Integer(), nullable=False, server_default=sa.text("0"))
        op.add_column("workers", column)
    op.create_table(
        "worker_samples",
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("secs", sa.Double(), nullable=False),
        sa.Column("noise", sa.Double(), nullable=False),
        sa.Column("utilisation", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("worker", "at", name="pk_worker_samples"),
    )


def downgrade() -> None:
    """Drop the health of workers."""
    op.drop_table("worker_samples")
    for name in reversed(_COUNTS):
        op.drop_column("workers", name)
