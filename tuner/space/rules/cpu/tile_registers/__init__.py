"""Rules for sums in the tile registers of a CPU (AMX)."""
