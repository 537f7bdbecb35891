"""The searches of `loopwright tune`: one workload or several, here or on a server."""
