"""Fourier transforms: they are matrix products and convolutions with constants."""

from __future__ import annotations

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent
from compiler.graph.nodes import Array, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator

MAX_MATRIX = 1 << 24
"""Elements of the matrix of a transform: one of 2048 complex numbers to as many has 2^24."""


@onnx_operator("DFT")
def _dft(call: OnnxCall) -> Operand:
    x, tensor_type = call.operand(0), call.type(0)
    rank, shape = tensor_type.rank, tensor_type.shape
    axis = _axis(call, rank)
    matrix = _matrix(call, shape[axis], shape[-1])
    size_in, parts, size_out, parts_out = matrix.shape
    # The axis moves to the end, before the real and the imaginary part.
    order = [k for k in range(rank) if k != axis]
    order.insert(rank - 2, axis)
    moved = call.add("permute_dims", x, axes=tuple(order))
    outer = moved.type.shape[:-2]
    rows = call.add("reshape", moved, shape=(*outer, size_in * parts))
    weights = matrix.reshape(size_in * parts, size_out * parts_out).astype(tensor_type.dtype)
    product = call.add("matmul", rows, call.constant(weights))
    parted = call.add("reshape", product, shape=(*outer, size_out, parts_out))
    return call.add("permute_dims", parted, axes=tuple(int(k) for k in np.argsort(order)))


def _axis(call: OnnxCall, rank: int) -> int:
    """Return the axis of the signal; the last one has the real and the imaginary part."""
    if call.opset < 20:
        axis = call.int_attr("axis", 1)
    else:
        axis = int(call.scalar_of(2, "the axis").item()) if call.has(2) else -2
    if rank < 2 or not -rank <= axis < rank or axis % rank == rank - 1:
        raise ModelError(f"a transform along axis {axis} of {call.type(0)}")
    return axis % rank


def _matrix(call: OnnxCall, size: Extent, parts: Extent) -> Array:
    """Return what a transform makes of unit vectors: extents (size, parts, size, parts)."""
    inverse, onesided = call.int_attr("inverse", 0), call.int_attr("onesided", 0)
    if not isinstance(size, int) or size < 1 or parts not in (1, 2):
        raise ModelError(f"a transform of {call.type(0)}")
    length = 2 * (size - 1) if inverse and onesided else size
    if call.has(1):
        length = int(call.scalar_of(1, "the length").item())
    num_parts = 1 if parts == 1 else 2
    if length < 1 or size * length * num_parts * 2 > MAX_MATRIX:
        raise ModelError(f"a transform of length {length}: expected 1 to {MAX_MATRIX} weights")
    units = np.eye(size * num_parts).reshape(size, num_parts, size, num_parts)
    signal = units[..., 0] + (1j * units[..., 1] if num_parts == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(signal, length)[..., None]
    spectrum = np.fft.ifft(signal, length) if inverse else np.fft.fft(signal, length)
    if onesided:
        spectrum = spectrum[..., : length // 2 + 1]
    return np.stack([spectrum.real, spectrum.imag], axis=-1)


@onnx_operator("STFT")
def _stft(call: OnnxCall) -> Operand:
    """Convolve with the rows of the transform: one channel for each real and imaginary part.

    A signal without parts, of extents (batch, time), is real: onnxruntime takes such signals too.
    """
    signal, tensor_type = call.operand(0), call.type(0)
    step = int(call.scalar_of(1, "the step").item())
    window = call.constant_of(2, "the window").astype(np.float64) if call.has(2) else None
    length = _frame_length(call, window)
    parts = 1 if tensor_type.rank == 2 else tensor_type.shape[-1]
    if tensor_type.rank not in (2, 3) or parts not in (1, 2):
        raise ModelError(
            f"a transform of {tensor_type}: expected extents (batch, time) or (batch, time, 1 or 2)"
        )
    if step < 1 or length < 1:
        raise ModelError(f"a transform of frames of {length}, {step} apart: expected 1 or more")
    if length * length * parts * 2 > MAX_MATRIX:
        raise ModelError(f"a transform of length {length} has more than {MAX_MATRIX} weights")
    rows = np.fft.fft(np.eye(length) if window is None else np.diag(window))
    if call.int_attr("onesided", 1):
        rows = rows[:, : length // 2 + 1]
    real, imaginary = [rows.real, -rows.imag], [rows.imag, rows.real]
    kernel = np.stack([np.stack(real[:parts]), np.stack(imaginary[:parts])])
    # Extents (part of the result, part of the signal, time, frequency) become those of a kernel.
    size = rows.shape[1]
    weights = kernel.transpose(3, 0, 1, 2).reshape(2 * size, parts, length)
    if tensor_type.rank == 2:
        channels = call.add("expand_dims", signal, axis=(1,))
    else:
        channels = call.add("permute_dims", signal, axes=(0, 2, 1))
    filters = call.constant(weights.astype(tensor_type.dtype))
    frames = call.add("nn.conv1d", channels, filters, strides=(step,))
    moved = call.add("permute_dims", frames, axes=(0, 2, 1))
    return call.add("reshape", moved, shape=(*moved.type.shape[:2], size, 2))


def _frame_length(call: OnnxCall, window: Array | None) -> int:
    if call.has(3):
        length = int(call.scalar_of(3, "the length of frames").item())
        if window is not None and window.shape != (length,):
            raise ModelError(f"a window of shape {window.shape} for frames of {length}")
        return length
    if window is None or window.ndim != 1:
        raise ModelError("the length of frames is missing")
    return int(window.shape[0])


@onnx_operator("MelWeightMatrix")
def _mel_weight_matrix(call: OnnxCall) -> Operand:
    """Return triangles over frequencies, whose corners are equally far apart in mel."""
    names = ("bins", "length", "sample rate", "lower edge", "upper edge")
    values = [call.scalar_of(k, f"the {name}").item() for k, name in enumerate(names)]
    num_bins, length, rate = (int(value) for value in values[:3])
    size = length // 2 + 1
    if num_bins < 1 or length < 1 or rate < 1 or size * num_bins > MAX_MATRIX:
        raise ModelError(f"{num_bins} mel bins of {length} samples at {rate} Hz")
    edges = 2595 * np.log10(1 + np.array(values[3:], np.float64) / 700)
    mels = edges[0] + np.arange(num_bins + 2) * (edges[1] - edges[0]) / (num_bins + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    corners = ((length + 1) * hertz // rate).astype(np.int64)
    low, center, high = corners[:-2], corners[1:-1], corners[2:]
    frequency = np.arange(size)[:, None]
    with np.errstate(all="ignore"):  # a side of no width has no frequencies
        rising = np.where(center > low, (frequency - low) / (center - low), 1.0)
        falling = np.where(high > center, (high - frequency) / (high - center), 1.0)
    triangles = np.where(frequency <= center, rising, falling)
    inside = (frequency >= low) & ((frequency < high) | (frequency == center))
    dtype = call.dtype_attr("output_datatype") or "float32"
    return call.constant(np.where(inside, triangles, 0.0).astype(dtype))
