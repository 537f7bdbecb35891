"""Names, notes and tags of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: earlier jobs have no texts."""
    op.add_column("jobs", sa.Column("name", sa.String(255), nullable=True))
    op.add_column("jobs", sa.Column("note", sa.Text(), nullable=True))
    op.add_column(
        "jobs", sa.Column("tags", sa.JSON(), nullable=False, server_default=sa.text("'[]'"))
    )


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("jobs", "tags")
    op.drop_column("jobs", "note")
    op.drop_column("jobs", "name")
