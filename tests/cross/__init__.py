"""Kernels for other CPUs, linked with programs in C and run in QEMU's user mode."""
