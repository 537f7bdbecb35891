"""A compiler that dies at once."""

import os
import signal

if __name__ == "__main__":
    os.kill(os.getpid(), signal.SIGSEGV)
