"""Files for programs in C: object file, header, shared library; the C compiler that links them."""
