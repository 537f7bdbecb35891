"""From programs of plain loops to programs of blocks, which schedules need."""
