"""Tokens, and the owner and the request id of a job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_IS_LIVE = sa.text("revoked_at IS NULL")


def upgrade() -> None:
    """Create the table, and make room for the name of a token in `jobs.owner`."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("last_used_at", _MOMENT),
        sa.Column("revoked_at", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("sha256", name="uq_tokens_sha256"),
    )
    op.create_index(
        "ix_tokens_live_name",
        "tokens",
        ["name"],
        unique=True,
        sqlite_where=_IS_LIVE,
        postgresql_where=_IS_LIVE,
    )
    op.execute("ALTER TABLE jobs RENAME COLUMN owner TO lease_owner")
    op.add_column("jobs", sa.Column("owner", sa.String(64)))
    op.add_column("jobs", sa.Column("request_id", sa.String(64)))


def downgrade() -> None:
    """Drop what was added."""
    op.drop_column("jobs", "request_id")
    op.drop_column("jobs", "owner")
    op.execute("ALTER TABLE jobs RENAME COLUMN lease_owner TO owner")
    op.drop_index("ix_tokens_live_name", table_name="tokens")
    op.drop_table("tokens")
