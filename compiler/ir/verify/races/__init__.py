"""Which programs race: two iterations or threads may touch one element at once, and one writes."""
