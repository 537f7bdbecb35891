"""Code generation: LLVM IR text from lowered programs, and machine code from that."""
