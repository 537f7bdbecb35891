"""The history of the database schema: one script a revision; see `store.database.migrate`.

The statements of a released script never change. A new one is written by hand beside the others;
the test that compares the schema with the row classes prints what it still lacks.
"""
