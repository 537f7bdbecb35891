"""Cost models: they rank candidates by expected speed, learned from measurements."""
