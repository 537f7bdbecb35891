"""What every room of the service may use."""
