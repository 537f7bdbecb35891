"""Quotas of tokens, idempotency keys of a token, and when a job is claimed again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)
_QUOTAS = ("max_jobs", "max_trials", "max_priority")
_MOMENTS = ("claimed_at", "retry_at", "progress_at")


def upgrade() -> None:
    """Add the columns; a key belongs to the owner of the job that it created."""
    for name in _QUOTAS:
        op.add_column("tokens", sa.Column(name, sa.Integer()))
    op.add_column(
        "jobs", sa.Column("crashes", sa.Integer(), nullable=False, server_default=sa.text("0"))
    )
    for name in _MOMENTS:
        op.add_column("jobs", sa.Column(name, _MOMENT))
    op.create_index("ix_jobs_progress_at", "jobs", ["progress_at"])
    _rebuild_keys(
        [sa.Column("owner", sa.String(64), nullable=False)],
        ["owner", "key"],
        "INSERT INTO idempotency_keys (owner, key, request_sha256, job_id, created_at) "
        "SELECT coalesce(jobs.owner, ''), former.key, former.request_sha256, former.job_id, "
        "former.created_at FROM former_keys AS former JOIN jobs ON jobs.id = former.job_id",
    )


def downgrade() -> None:
    """Drop what was added; of keys that several tokens chose, one stays."""
    _rebuild_keys(
        [],
        ["key"],
        "INSERT INTO idempotency_keys (key, request_sha256, job_id, created_at) "
        "SELECT former.key, former.request_sha256, former.job_id, former.created_at "
        "FROM former_keys AS former WHERE former.owner = "
        "(SELECT min(same.owner) FROM former_keys AS same WHERE same.key = former.key)",
    )
    op.drop_index("ix_jobs_progress_at", table_name="jobs")
    for name in reversed(_MOMENTS):
        op.drop_column("jobs", name)
    op.drop_column("jobs", "crashes")
    for name in reversed(_QUOTAS):
        op.drop_column("tokens", name)


def _rebuild_keys(more: list[sa.Column[str]], primary_key: list[str], copy: str) -> None:
    """Recreate the table of keys with another primary key, which SQLite cannot change."""
    op.execute("CREATE TABLE former_keys AS SELECT * FROM idempotency_keys")
    op.drop_table("idempotency_keys")
    op.create_table(
        "idempotency_keys",
        *more,
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint(*primary_key, name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_idempotency_keys_job_id"),
    )
    op.execute(copy)
    op.drop_table("former_keys")
