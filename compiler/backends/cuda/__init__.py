"""The backend of NVIDIA's GPUs: CUDA C++ as text, compiled by NVRTC; it needs no GPU to build."""
