"""Models that are malformed on purpose: each is refused at once, with a reason."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant
from compiler.graph.read_onnx import read_onnx

MODEL = """
<ir_version: 9, opset_import: ["" : 17]>
main (float[2, 3] x) => (float[2, 3] y)
<float[3] w = {1, 2, 3}>
{
    a = Add(x, w)
    y = Mul(a, x)
}
"""


def _model(text: str = MODEL) -> ModelProto:
    model: ModelProto = parser.parse_model(text)
    return model


def _refusal(model: ModelProto | bytes | Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_onnx(model)
    return str(caught.value)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    data = _model().SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(data[:-9])
    assert "is not a model in the format of ONNX" in _refusal(path)
    assert "is not a model" in _refusal(b"PK\x03\x04 zip")
    assert "holds no graph" in _refusal(b"")


def test_a_file_beyond_the_limit_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.touch()
    os.truncate(path, 1 << 40)
    assert "1099511627776 bytes: expected at most 2147483647" in _refusal(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("a = Add(x, w)", "a = Add(b, w) b = Add(a, w)", "Add 'a': b is read, but no earlier"),
        ("y = Mul(a, x)", "y = Mul(y, x)", "Mul 'y': y is read, but no earlier"),
        ("y = Mul(a, x)", "a = Mul(a, x) y = Add(a, x)", "Mul 'a': the name a is defined twice"),
        ("y = Mul(a, x)", "b = Mul(a, x)", "y is read, but no earlier node makes it"),
        ("Mul(a, x)", "Mul(a)", "Mul 'y': the node has 1 operands: expected 2"),
        ("Mul(a, x)", "Mul(a, x, x)", "Mul 'y': the node has 3 operands: expected 2"),
        ("Mul(a, x)", "Mul<axis = 1>(a, x)", "Mul 'y': there is no attribute axis: expected none"),
        ("Mul(a, x)", 'Cast<to = "1">(a)', "attribute to has a value of the type STRING: exp"),
        ("Mul(a, x)", "Cast(a)", "Cast 'y': the attribute to is missing"),
        (
            "Mul(a, x)",
            "Constant()",
            "Constant 'y': a constant has 0 values: expected one attribute",
        ),
        ("Mul(a, x)", "InstanceNormalization(x, a, a)", "(2, 3): expected one number for each"),
        (
            "y = Mul(a, x)",
            "s = Constant<value_ints = [1, 2, 3]>() r = Reshape(x, s) y = GRU(r, w, w)",
            "GRU 'y': operand 1 has shape (3,): expected 3 dimensions",
        ),
        ("Mul(a, x)", "Mull(a, x)", "Mull 'y': ONNX has no such operator in version 17"),
        ("Mul(a, x)", "my.Mul(a, x)", "does not import the operator set 'my'"),
        ("float[3] w = {1, 2, 3}", "float[5] w = {1, 2, 3}", "tensor 'w' of shape (5,) holds"),
        (
            "float[3] w = {1, 2, 3}",
            "double[3] w = {1, 2, 3}",
            "(B) is a tensor(double)",
        ),
        ("float[2, 3] x", "float[2, 4] x", "can't be broadcast"),
        ("float[2, 3] x", "string[2, 3] x", "input 'x': the data type STRING is not supported"),
        ("float[2, 3] x", "seq(float[2]) x", "input 'x' is a sequence_type: expected a tensor"),
        ("float[2, 3] x", "float[] x", "input 'x' has no shape"),
        ("float[2, 3] x", f"float[{'1, ' * 20}3] x", "expected at most 16 extents"),
        ("float[2, 3] x", "float[99999999999, 3] x", "at most 17179869184 elements"),
        ("17]", "99]", "version 99 of ONNX's operators: expected 6 to"),
        ("17]", "3]", "version 3 of ONNX's operators: expected 6 to"),
    ],
)
def test_a_malformed_model_is_refused(old: str, new: str, message: str) -> None:
    assert message in _refusal(_model(MODEL.replace(old, new, 1)))


def test_a_tensor_without_its_data_is_refused() -> None:
    model = _model()
    model.graph.initializer[0].dims[:] = [1 << 33]
    assert "holds other data" in _refusal(model)
    model.graph.initializer[0].dims[:] = [1 << 62, 1 << 62]
    assert "expected at most 17179869184 elements" in _refusal(model)
    model.graph.initializer[0].dims[:] = [-3]
    assert "extents of 0 or more" in _refusal(model)


def test_broadcasts_that_grow_without_bounds_are_refused() -> None:
    """Each addition of a row and a column squares the elements."""
    lines = [f"a{k + 1} = Mul(a{k}, a{k})" for k in range(3)]
    text = MODEL.replace("a = Add(x, w)", "\n".join(["a0 = Add(x, t)", *lines, "a = Add(a3, u)"]))
    text = text.replace("<float[3] w", "<float[1] t = {1}, float[1] u = {1}, float[3] w")
    model = _model(text)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1 << 30
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    wide = numpy_helper.from_array(np.zeros((1, 64), np.float32), "u")
    model.graph.initializer.remove(next(t for t in model.graph.initializer if t.name == "u"))
    model.graph.initializer.append(wide)
    assert "Add 'a': a result of add has the shape (1073741824, 64)" in _refusal(model)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (np.int64(1 << 40), "has the shape (1099511627776,): expected at most"),
        (np.int64(1 << 30), "constants of more than 2147483648 bytes follow from each other"),
        (np.float32("nan"), "a range from 0.0 to nan by 1.0 has no end"),
        (np.float64("inf"), "a range from 0.0 to inf by 1.0 has no end"),
    ],
)
def test_a_range_that_is_too_large_is_refused_before_it_is_made(
    end: np.number[Any], message: str
) -> None:
    numbers = {"begin": end.dtype.type(0), "end": end, "step": end.dtype.type(1)}
    graph = helper.make_graph(
        [helper.make_node("Range", list(numbers), ["y"])],
        "range",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    refusal = _refusal(model)
    assert refusal.startswith("Range 'y': ")
    assert message in refusal


def test_a_matrix_that_is_too_large_is_refused_before_it_is_made() -> None:
    text = MODEL.replace("float[2, 3] x", "float[131072, 131072] x")
    text = text.replace("a = Add(x, w)", "e = EyeLike(x)  a = Add(x, e)")
    assert "EyeLike 'e': constants of more than 2147483648 bytes" in _refusal(_model(text))


def test_two_functions_of_one_name_are_refused() -> None:
    imports = [helper.make_opsetid("", 17)]
    model = _model()
    for op in ("Relu", "Neg"):
        body = [helper.make_node(op, ["a"], ["b"])]
        model.functions.append(helper.make_function("d", "f", ["a"], ["b"], body, imports))
    assert "two functions of the model have the name 'd.f'" in _refusal(model)


def _external(tmp_path: Path, location: str, **entries: int) -> Path:
    model = _model()
    tensor = model.graph.initializer[0]
    tensor.Clear()
    tensor.name, tensor.data_type, tensor.data_location = "w", TensorProto.FLOAT, 1
    tensor.dims[:] = [3]
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def test_external_data_is_mapped_from_the_folder_of_the_model(tmp_path: Path) -> None:
    path = _external(tmp_path, "weights.bin", offset=4, length=12)
    (path.parent / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    [weights] = [x for x in read_onnx(path).nodes[0].inputs if isinstance(x, Constant)]
    assert weights.elements.tolist() == [1, 2, 3]


def _beside(path: Path) -> str:
    (path.parent.parent / "secret").write_bytes(bytes(16))
    return "../secret"


def _absolute(path: Path) -> str:
    _beside(path)
    return str(path.parent.parent / "secret")


def _link(path: Path) -> str:
    (path.parent / "link").symlink_to(_absolute(path))
    return "link"


def _pipe(path: Path) -> str:
    os.mkfifo(path.parent / "pipe")
    return "pipe"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (_beside, "'../secret' is not in the folder"),
        (_absolute, "is not in the folder of the model"),
        (_link, "'link' is not in the folder of the model"),
        (_pipe, "'pipe' is not a regular file"),
        (lambda _: "/dev/zero", "is not in the folder of the model"),
        (lambda _: "missing", "No such file"),
        (lambda _: "", "is not in the folder of the model"),
        (lambda _: ".", "is not a regular file"),
        (lambda _: "a\0b", "null"),
    ],
)
def test_external_data_outside_of_the_folder_is_refused(
    tmp_path: Path, location: Callable[[Path], str], message: str
) -> None:
    path = _external(tmp_path, location(_external(tmp_path, "x")))
    assert message in _refusal(path)


def test_external_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = _external(tmp_path, "weights.bin", offset=8)
    (path.parent / "weights.bin").write_bytes(bytes(16))
    assert "tensor 'w' has external data that can't be read" in _refusal(path)
    assert "expected a length of 12" in _refusal(_external(tmp_path, "weights.bin", length=8))
    assert "can't be read" in _refusal(_external(tmp_path, "weights.bin", offset=-4))


def test_a_model_in_memory_has_no_external_data(tmp_path: Path) -> None:
    path = _external(tmp_path, "weights.bin")
    assert "the model was not read from a file" in _refusal(path.read_bytes())


def test_inputs_and_outputs_have_distinct_names() -> None:
    model = _model()
    model.graph.output.append(model.graph.output[0])
    assert "two outputs of the model have one name" in _refusal(model)
    model = _model()
    model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]))
    assert "the name x is defined twice" in _refusal(model)
