"""Our strategies on spaces that others measured, scored by Kernel Tuner's methodology."""
