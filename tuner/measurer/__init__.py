"""Where candidates become measurements: the port that workers fill, and its test doubles."""
