"""The design space: schedule rules, the sketches that they make, and their tables."""
