"""ONNX models with functions, branches, loops and symbolic axes, in ONNX's text format."""

MODEL_TEXTS = (
    """
    <ir_version: 9, opset_import: ["" : 17, "local" : 1]>
    functions (float[3] x) => (float[3] y) { y = local.scaled<factor = 3.0>(x) }

    <domain: "local", opset_import: ["" : 17, "local" : 1]>
    scaled <factor> (x) => (y)
    {
        by = Constant<value_float: float = @factor>()
        doubled = local.twice(x)
        y = Mul(doubled, by)
    }

    <domain: "local", opset_import: ["" : 17]>
    twice (x) => (y) { y = Add(x, x) }
    """,
    """
    <ir_version: 9, opset_import: ["" : 17]>
    branches (float[3] x) => (float[3] y) <bool c = {1}>
    {
        y = If (c) <
            then_branch = plus () => (float[3] a) { a = Add(x, x) },
            else_branch = times () => (float[3] b) { b = Mul(x, x) }
        >
    }
    """,
    """
    <ir_version: 9, opset_import: ["" : 17]>
    loop (float[3] x) => (float[3] y, float[N, 3] steps) <int64 trips = {4}, bool go = {1}>
    {
        y, steps = Loop (trips, go, x) <
            body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] u) {
                d = Identity(c)
                t = Add(s, x)
                u = Mul(t, x)
            }
        >
    }
    """,
    """
    <ir_version: 9, opset_import: ["" : 17]>
    flattened (float[batch, 4, 6] x, float[batch, 24] z) => (float[batch, 24] y)
    <int64 first = {0}, int64[1] zero = {0}, int64[1] rest = {-1}>
    {
        shape = Shape(x)
        batch = Gather<axis = 0>(shape, first)
        rows = Unsqueeze(batch, zero)
        new_shape = Concat<axis = 0>(rows, rest)
        flat = Reshape(x, new_shape)
        y = Add(flat, z)
    }
    """,
    """
    <ir_version: 9, opset_import: ["" : 17]>
    network (float[n, 3, 16, 16] x) => (float[n, 5] y)
    <float[4, 3, 3, 3] w, float[4, 5] v, float[5] bias = {1, 2, 3, 4, 5}>
    {
        c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)
        r = Relu(c)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        y = Gemm(f, v, bias)
    }
    """,
)
