"""The coordinator: claims jobs, drives them, keeps their leases."""
