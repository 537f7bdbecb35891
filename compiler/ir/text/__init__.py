"""Print programs: as script, in colour, or in one line."""
