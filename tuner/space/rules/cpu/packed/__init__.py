"""Rules that pack operands of products and convolutions into panels, and what they share."""
