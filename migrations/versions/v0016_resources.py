"""What the kernel of a trial uses of its device."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which is null for earlier measurements."""
    op.add_column("trials", sa.Column("resources", sa.JSON()))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("trials", "resources")
