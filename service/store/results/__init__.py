"""The results of jobs: what is measured becomes trials, best schedules and finals."""
