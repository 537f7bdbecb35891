"""Run the scripts on the connection of the caller; alembic loads this module first.

The caller holds the transaction, so a migration that fails leaves nothing behind.
"""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
