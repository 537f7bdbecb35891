"""How a library ran that was timed beside a kernel: its code for the CPU, and its settings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_NAMES = ("kernel_set", "setting", "tried", "share_of_peak", "is_below_cpu")


def upgrade() -> None:
    """Add the columns, which are null for earlier measurements."""
    with op.batch_alter_table("baselines") as table:
        table.add_column(sa.Column("kernel_set", sa.String(64)))
        table.add_column(sa.Column("setting", sa.String(255)))
        table.add_column(sa.Column("tried", sa.JSON()))
        table.add_column(sa.Column("share_of_peak", sa.Double()))
        table.add_column(
            sa.Column("is_below_cpu", sa.Boolean(), nullable=False, server_default=sa.false())
        )


def downgrade() -> None:
    """Drop the columns."""
    with op.batch_alter_table("baselines") as table:
        for name in _NAMES:
            table.drop_column(name)
