"""Records: jobs with all their measurements, as JSON lines, to copy between stores."""
