"""Sessions of remote clients with this worker: kernels of theirs run in sandboxed children."""
