"""The check for races: two iterations or threads may access one element, and one of them writes."""
