"""The final comparison of a search: it measures the best candidates again, side by side."""
