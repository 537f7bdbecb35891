"""Schedule rules of CPUs: vectors, register tiles, panels, parts for cores."""
