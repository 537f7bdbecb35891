"""Mathematical functions as polynomials on scalars and vectors of any number of lanes."""
