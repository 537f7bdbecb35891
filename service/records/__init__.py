"""Records: jobs with all that was measured, as lines of JSON that go from store to store."""
