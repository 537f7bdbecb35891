"""The coordinator: claims jobs, runs them and renews their leases."""
