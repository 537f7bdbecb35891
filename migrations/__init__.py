"""The history of the database schema: one script a revision; see `store.database.migrate`.

A script that was released never changes. A new one is written by hand beside the others; the test
that compares the schema with the row classes prints what it still lacks.
"""
