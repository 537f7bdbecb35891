"""Facts about whole programs: regions, coverage, operations, identity, specialization."""
