"""The budget of a group is named as that of a job."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename the column."""
    op.execute("ALTER TABLE groups RENAME COLUMN trials TO max_trials")


def downgrade() -> None:
    """Give the column its earlier name."""
    op.execute("ALTER TABLE groups RENAME COLUMN max_trials TO trials")
