from typing import Any

import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.graph.operator import find_operator
from compiler.graph.operators.images.resized_axes import MODES, ROUNDINGS
from tests.unit.compiler.graph.operators.checking import Array, Case, check, numbers

X = numbers(2, 3, 5, 4)


def _case(size: tuple[int, ...], x: Array = X, /, **attrs: Any) -> Case:
    return Case(f"image.resize{len(size)}d", [x], {"size": size, **attrs})


@pytest.mark.parametrize("mode", MODES)
def test_images_of_other_sizes(mode: str) -> None:
    attrs: dict[str, Any] = {"coordinate_transformation_mode": mode, "extrapolation_value": 7.0}
    sizes = [(10, 8), (3, 9), (1, 1), (5, 4)]
    linear = [_case(size, **attrs) for size in sizes]
    cubic = [
        _case((8, 3), method="cubic", cubic_exclude=is_out, **attrs) for is_out in (False, True)
    ]
    nearest = [
        _case(size, method="nearest_neighbor", rounding_method=rounding, **attrs)
        for rounding in ROUNDINGS
        for size in sizes
    ]
    part = _case((4, 7), roi=(0.1, -0.5, 1.2, 0.8), **attrs)
    scaled = _case((7, 9), scales=(1.5, 2.3), **attrs)
    check(*linear, *cubic, *nearest, part, scaled, tolerance=4)


def test_the_nearest_element_is_that_of_a_quotient_in_float32() -> None:
    """The float32 of 0.6 is a little larger, so that 3 / 0.6 is a little less than 5."""
    x = np.arange(7, dtype=np.float32).reshape(1, 1, 7)
    nearest: dict[str, Any] = {"method": "nearest_neighbor", "rounding_method": "floor"}
    [[by_floor], [alone]] = check(
        _case(
            (4,),
            x,
            scales=(float(np.float32(0.6)),),
            coordinate_transformation_mode="asymmetric",
            **nearest,
        ),
        _case(
            (1,), x, scales=(0.2,), coordinate_transformation_mode="pytorch_half_pixel", **nearest
        ),
    )
    assert by_floor.reshape(-1).tolist() == [0, 1, 3, 5]
    assert alone.item() == 0


def test_lines_and_volumes_are_resized() -> None:
    check(
        _case((7,), numbers(1, 2, 4)),
        _case((4, 2, 6), numbers(1, 2, 2, 3, 4), method="cubic"),
        _case((4, 6, 8), numbers(1, 2, 2, 3, 4, dtype="int8"), method="nearest_neighbor"),
        _case((7, 3), numbers(1, 1, 4, 4, dtype="float16")),
        _case((3,), numbers(1, 2, 11), antialias=True),
        _case((3, 2), numbers(1, 2, 5, 9), antialias=True, method="cubic", cubic_exclude=True),
        tolerance=4,
    )


def test_a_linear_function_remains_linear_between_its_corners() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    attrs: dict[str, Any] = {"coordinate_transformation_mode": "align_corners"}
    [[result]] = check(_case((7,), x, **attrs))
    np.testing.assert_allclose(result[0, 0], np.arange(7) / 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"size": (3,)}, "size is"),
        ({"size": (3, 0)}, "size is"),
        ({"size": (3, 3), "method": "area"}, "method is 'area'"),
        ({"size": (3, 3), "scales": (1.0, -1.0)}, "expected 2 positive numbers"),
        ({"size": (3, 3), "roi": (0.0, 1.0)}, "expected 4 numbers"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(attrs: dict[str, Any], message: str) -> None:
    operator = find_operator("image.resize2d")
    with pytest.raises(ModelError, match=message):
        operator.infer_types([TensorType((1, 1, 4, 4), "float32")], operator.complete(attrs))
