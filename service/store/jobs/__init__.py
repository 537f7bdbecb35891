"""Jobs and all that belongs to one: leases, events, groups, finishes."""
