"""Kernels on devices that a stream reaches: `docs/remote.md`, `docs/remote_protocol.md`."""
