"""The conditions under which a trial was timed on a GPU."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which is null for earlier measurements."""
    op.add_column("trials", sa.Column("conditions", sa.JSON()))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("trials", "conditions")
