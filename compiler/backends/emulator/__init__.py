"""The emulator: run PTX on the CPU, all threads as lanes of NumPy arrays, and report faults."""
