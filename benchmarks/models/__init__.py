"""Whole models beside onnxruntime and OpenVINO, from ONNX files."""
