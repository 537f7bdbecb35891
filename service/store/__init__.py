"""The SQL store: one module a table, each with its row and its queries.

Rows refer to each other by name: all of them are loaded before the first is used.
"""

from service.store import schema

__all__ = ["schema"]
