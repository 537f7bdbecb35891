"""The SQL store: one module a table, each with its row and its queries."""
