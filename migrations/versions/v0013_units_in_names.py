"""Budgets and baselines name what they limit, with its unit, and the number that they refer to."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_RENAMED = (
    ("jobs", "trials", "max_trials"),
    ("jobs", "seconds", "max_secs"),
    ("baselines", "number", "trial_number"),
)


def upgrade() -> None:
    """Rename the columns."""
    for table, earlier, name in _RENAMED:
        _rename(table, earlier, name)


def downgrade() -> None:
    """Give the columns their earlier names."""
    for table, earlier, name in _RENAMED:
        _rename(table, name, earlier)


def _rename(table: str, name: str, new_name: str) -> None:
    # SQLite and PostgreSQL share this statement. A batch would copy the table of jobs, which the
    # foreign keys of its trials forbid.
    op.execute(f"ALTER TABLE {table} RENAME COLUMN {name} TO {new_name}")
