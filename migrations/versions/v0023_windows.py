"""Time windows of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: earlier jobs may run at any time."""
    op.add_column("jobs", sa.Column("window_text", sa.String(100), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("jobs", "window_text")
