"""The finish of a search: its best candidates are measured again, side by side."""
