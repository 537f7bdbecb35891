"""Facts about blocks that rules and features need."""
