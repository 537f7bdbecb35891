"""The database: opening, migration and health, and the base of all tables."""
