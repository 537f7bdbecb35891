"""What is claimed of the best schedule of a job among those of its space."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: nothing is claimed of earlier jobs."""
    op.add_column("jobs", sa.Column("space_claim", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("jobs", "space_claim")
