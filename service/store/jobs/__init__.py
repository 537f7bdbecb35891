"""Jobs and their leases, events, groups, controls, quotas and baselines."""
