"""The results of jobs: trials, best schedules and finals."""
