"""The design space: schedule rules, the sketches they make, and their tables."""
