"""Whole models: from a graph or an ONNX file to an object that runs."""
