"""Integer arithmetic on index expressions: normal forms, bounds, simplification."""
