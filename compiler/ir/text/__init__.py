"""Print programs: as script, in colour, in one line."""
