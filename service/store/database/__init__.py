"""The database itself: open it, migrate it, know its health; what all tables build on."""
