"""Whether the result of a trial was checked in parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: earlier results were compared whole."""
    op.add_column(
        "trials",
        sa.Column("is_spot_checked", sa.Boolean(), nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("trials", "is_spot_checked")
