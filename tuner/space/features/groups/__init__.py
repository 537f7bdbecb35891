"""The groups of columns that make up the features, one a file."""
