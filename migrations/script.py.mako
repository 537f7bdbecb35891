"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move the schema up."""
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade() -> None:
    """Move the schema down."""
    ${downgrades if downgrades else "raise NotImplementedError"}
