"""What all backends share to run kernels: artifacts, signatures, arrays, timing, measurements."""
