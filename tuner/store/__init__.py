"""Where trials are kept: the contract, and a store in memory."""
