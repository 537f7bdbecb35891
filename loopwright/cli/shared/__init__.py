"""What several commands share: options, output, errors, the choice of a server."""
