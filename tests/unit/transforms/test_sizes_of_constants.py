"""Sizes that folded constants decide are known, as where PyTorch pads a tensor of free sizes."""

from __future__ import annotations

from unit.transforms.transformed import agrees, floats, parsed

X = {"x": floats(3, 4)}


def test_an_empty_constant_of_a_computed_size_is_folded() -> None:
    """PyTorch's pads are two for each axis, and as many zeros as are missing: here none."""
    proto = parsed(
        """g (float[h, w] x) => (float[a, b] z)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[2] pairs = {-1, 2}, float none = {0.0},
         int64[1] first = {-1}, int64[1] last = {-9223372036854775807}, int64[1] flat = {-1},
         int64[1] one = {1}> {
        s = Shape(x) h1 = Slice(s, zero, one) o = Sub(h1, h1) t = Concat<axis = 0>(o, h1, o, o)
        n = Shape(t) missing = Sub(four, n) more = ConstantOfShape<value = int64[1] {0}>(missing)
        all = Concat<axis = 0>(t, more) rows = Reshape(all, pairs)
        turned = Slice(rows, first, last, zero, first) columns = Transpose<perm = [1, 0]>(turned)
        p = Reshape(columns, flat) z = Pad(x, p, none) }"""
    )
    ran = agrees(proto, X)
    assert "ConstantOfShape" not in ran.left


def test_constants_that_decide_the_size_of_others_are_all_folded() -> None:
    proto = parsed(
        """g (float[h, w] x) => (float[a, b, c] z)
        <int64 start = {0}, int64 step = {1}, int64[1] zero = {0}> {
        s = Shape(x) c = Shape(s) n = Squeeze(c) ramp = Range(start, n, step) k = Shape(ramp)
        ones = ConstantOfShape<value = float[1] {1.0}>(k) m = Sum(ones, ones)
        q = Unsqueeze(x, zero) u = Unsqueeze(m, zero) v = Unsqueeze(u, zero)
        t = Transpose<perm = [2, 1, 0]>(v) z = Mul(q, t) }"""
    )
    ran = agrees(proto, X)
    assert ran.left == ["Unsqueeze", "Mul"]


def test_a_range_that_is_made_by_nonzero_is_folded() -> None:
    """As PyTorch exported arange: the indices of as many ones."""
    proto = parsed(
        """g (float[3, 4] x) => (float[a, b] z)
        <int64[1] one = {1}> {
        s = Shape(x) length = Shape(s)
        ones = ConstantOfShape<value = int64[1] {1}>(length) indices = NonZero(ones)
        t = Transpose<perm = [1, 0]>(indices) ramp = Squeeze(t, one) z = Gather<axis = 1>(x, ramp)
        }""",
    )
    ran = agrees(proto, X)
    assert ran.left == ["Gather"]


def test_a_selection_of_nothing_is_folded() -> None:
    proto = parsed(
        """g (float[h, w] x) => (float[a, w] z)
        <float[2] zeros = {0.0, 0.0}> {
        indices = NonZero(zeros) t = Transpose<perm = [1, 0]>(indices)
        z = GatherND(x, t) }"""
    )
    ran = agrees(proto, X)
    assert "NonZero" not in ran.left


def test_sizes_of_one_layer_settle_those_of_the_next() -> None:
    """As where windows of an image are halved in each layer, by division of what Shape returns."""
    layers = " ".join(
        f"s{i} = Shape(x{i}) n{i} = Gather(s{i}, one) h{i} = Div(n{i}, two) "
        f"e{i} = Unsqueeze(h{i}, zero) x{i + 1} = Slice(x{i}, zero, e{i}, axis)"
        for i in range(6)
    )
    proto = parsed(
        f"""g (float[3, 64] x0) => (float[a, b] x6)
        <int64 one = {{1}}, int64 two = {{2}}, int64[1] zero = {{0}}, int64[1] axis = {{1}}> {{
        {layers} }}"""
    )
    ran = agrees(proto, {"x0": floats(3, 64)})
    assert ran.left == ["Slice"] * 6
