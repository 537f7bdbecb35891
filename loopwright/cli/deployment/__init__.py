"""The commands of a deployment: its processes, its database, its tokens and keys."""
