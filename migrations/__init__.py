"""The history of the database schema: one script a revision, run by `service.store.migrate`."""
