"""Matrix descriptors find the elements where the copy engine puts them."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.emulator.errors import EmulatorError
from compiler.backends.emulator.instructions.warpgroup import descriptor_addresses
from compiler.backends.emulator.tensor_copies import PIECE_BYTES, TensorMap

ROWS = 64


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_descriptors_agree_with_boxes(swizzle: int, is_transposed: bool) -> None:
    columns = swizzle // 2  # of float16
    box = TensorMap(np.zeros((ROWS, columns), np.float16), (ROWS, columns), swizzle)
    start = 8192
    pieces = box.pieces(start).reshape(ROWS, -1)
    row, column = (index.reshape(-1) for index in np.indices((ROWS, columns)))
    expected = pieces[row, 2 * column // PIECE_BYTES] + 2 * column % PIECE_BYTES
    # Groups of 8 rows follow each other; k runs along the rows if the matrix is transposed.
    stride = 8 * swizzle
    code = {128: 1, 64: 2, 32: 3}[swizzle]
    descriptor = start >> 4 | 1 << 16 | (stride >> 4) << 32 | code << 62
    m, k = (column, row) if is_transposed else (row, column)
    addresses = descriptor_addresses(descriptor, m, 2 * k, 2, is_transposed)
    assert (addresses == expected).all()
    assert len(set(addresses.tolist())) == ROWS * columns


def test_a_descriptor_without_a_swizzle_has_pieces_of_8_rows() -> None:
    row, column = (index.reshape(-1) for index in np.indices((16, 32)))
    descriptor = 1024 >> 4 | (128 >> 4) << 16 | (256 >> 4) << 32
    addresses = descriptor_addresses(descriptor, row, column, 2, False)
    expected = 1024 + row // 8 * 256 + column // 16 * 128 + row % 8 * 16 + column % 16
    assert (addresses == expected).all()


def test_tensor_maps_have_limits() -> None:
    tensor = np.zeros((64, 128), np.float16)
    with pytest.raises(EmulatorError, match="does not fit a swizzle of 64"):
        TensorMap(tensor, (64, 64), 64)
    with pytest.raises(EmulatorError, match="extents up to 256"):
        TensorMap(tensor, (512, 64), 128)
    with pytest.raises(EmulatorError, match="C-contiguous"):
        TensorMap(tensor.T, (64, 64), 128)


def test_a_box_at_the_edge_is_filled_with_zeros() -> None:
    tensor = np.arange(6 * 16, dtype=np.float32).reshape(6, 16)
    box = TensorMap(tensor, (4, 8), 32)
    content = box.take(tensor.reshape(-1).view(np.uint8), (4, -4)).view(np.float32).reshape(4, 8)
    expected = np.zeros((4, 8), np.float32)
    expected[:2, 4:] = tensor[4:, :4]
    assert (content == expected).all()
    assert sorted(box.sectors((4, -4), 32).tolist()) == [8, 10]
