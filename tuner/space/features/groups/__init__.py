"""The groups of columns that features are made of, one file each."""
