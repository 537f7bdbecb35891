"""Submit jobs and groups of jobs."""
