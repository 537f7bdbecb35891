"""What a client may take up, and which requests are refused before a route sees them."""
