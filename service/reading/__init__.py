"""What lists and plots are told: trials as columns, and what is computed of them."""
