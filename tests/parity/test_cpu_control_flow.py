"""Control flow, sequences and optionals agree with onnxruntime."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import onnx
import onnx.parser
import pytest
from parity.against_onnxruntime import onnxruntime_answers, same

import ort_lite

YES, NO = (np.array(value) for value in (True, False))
X = np.arange(6, dtype=np.float32).reshape(2, 3)

CASES = {
    "if with outer values": (
        """main (float[2,3] x, bool c) => (float[n,m] y) {
            two = Constant <value = float {2}> ()
            d = Mul (x, two)
            y = If (c) <
                then_branch = t () => (float[n,m] p) { p = Add (d, x) },
                else_branch = e () => (float[n,m] q) { q = Transpose (d) }>
        }""",
        [{"x": X, "c": YES}, {"x": X, "c": NO}],
    ),
    "if passes a value through": (
        """main (float[2,3] x, bool c) => (float[2,3] y) {
            y = If (c) <
                then_branch = t () => (float[2,3] p) { p = Identity (x) },
                else_branch = e () => (float[2,3] q) { q = Neg (x) }>
        }""",
        [{"x": X, "c": YES}],
    ),
    "loop with state and scan": (
        """main (int64 n, float[2,3] x) => (float[2,3] last, float[k,2,3] all) {
            last, all = Loop (n, , x) <body = b (int64 i, bool c, float[2,3] s)
                => (bool go, float[2,3] next, float[2,3] seen) {
                go = Identity (c)
                f = Cast <to = 1> (i)
                next = Add (s, f)
                seen = Mul (next, x)
            }>
        }""",
        [{"n": np.array(4), "x": X}, {"n": np.array(0), "x": X}],
    ),
    "loop with a number and a condition of rank 1": (
        """main (int64 n, float[2] x) => (float[2] last, int64[k,1] numbers, float[k,1] flags) {
            last, numbers, flags = Loop (n, , x) <
                body = b (int64[1] i, bool[1] c, float[2] s)
                => (bool[1] go, float[2] next, int64[1] number, float[1] flag) {
                go = Identity (c)
                next = Add (s, s)
                number = Neg (i)
                flag = Cast <to = 1> (c)
            }>
        }""",
        [{"n": np.array(3), "x": X[0, :2]}, {"n": np.array(0), "x": X[0, :2]}],
    ),
    "loop until a condition": (
        """main (float s) => (float last, float[k] all) {
            yes = Constant <value = bool {1}> ()
            last, all = Loop ( , yes, s) <body = b (int64 i, bool c, float t)
                => (bool go, float next, float seen) {
                two = Constant <value = float {2}> ()
                limit = Constant <value = float {100}> ()
                next = Mul (t, two)
                seen = Identity (t)
                go = Less (next, limit)
            }>
        }""",
        [{"s": np.array(3, np.float32)}],
    ),
    "loop that starts false": (
        """main (int64 n, bool c, float[2,3] x) => (float[2,3] last, float[k,2,3] all) {
            last, all = Loop (n, c, x) <body = b (int64 i, bool d, float[2,3] s)
                => (bool go, float[2,3] next, float[2,3] seen) {
                go = Identity (d)
                next = Neg (s)
                seen = Identity (s)
            }>
        }""",
        [{"n": np.array(4), "c": NO, "x": X}],
    ),
    "nested capture": (
        """main (int64 n, float[2,3] x, bool c) => (float[2,3] y) {
            y = Loop (n, , x) <body = b (int64 i, bool g, float[2,3] s)
                => (bool go, float[2,3] next) {
                go = Identity (g)
                next = If (c) <
                    then_branch = t () => (float[2,3] p) { p = Add (s, x) },
                    else_branch = e () => (float[2,3] q) { f = Cast <to = 1> (i)
                                                           q = Sub (s, f) }>
            }>
        }""",
        [{"n": np.array(3), "x": X, "c": np.array(c)} for c in (True, False)],
    ),
    "loop over a sequence": (
        """main (int64 n, float[2,3] x) => (seq(float[2,3]) out) {
            none = SequenceEmpty <dtype = 1> ()
            out = Loop (n, , none) <body = b (int64 i, bool g, seq(float[2,3]) s)
                => (bool go, seq(float[2,3]) next) {
                go = Identity (g)
                f = Cast <to = 1> (i)
                v = Add (x, f)
                next = SequenceInsert (s, v)
            }>
        }""",
        [{"n": np.array(3), "x": X}],
    ),
    "scan": (
        """main (float[3] s, float[4,3] x) => (float[3] last, float[4,3] sums) {
            last, sums = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] e)
                => (float[3] n, float[3] o) { n = Add (a, e)
                                              o = Identity (n) }> (s, x)
        }""",
        [{"s": np.zeros(3, np.float32), "x": np.arange(12, dtype=np.float32).reshape(4, 3)}],
    ),
    "scan along other axes, backwards": (
        """main (float[3] s, float[3,4] x) => (float[3] last, float[3,4] sums) {
            last, sums = Scan <num_scan_inputs = 1, scan_input_axes = [1],
                scan_input_directions = [1], scan_output_axes = [-1], scan_output_directions = [1],
                body = b (float[3] a, float[3] e)
                => (float[3] n, float[3] o) { n = Add (a, e)
                                              o = Mul (n, n) }> (s, x)
        }""",
        [{"s": np.zeros(3, np.float32), "x": np.arange(12, dtype=np.float32).reshape(3, 4)}],
    ),
    "scan over numbers, some of whose results are what it was given": (
        """main (float s, float[4] x, int64[2] k) => (float last, float[4] was, int64[4,2] kept) {
            last, was, kept = Scan <num_scan_inputs = 1, body = b (float a, float e)
                => (float n, float o, int64[2] p) { n = Add (a, e)
                                                    o = Identity (e)
                                                    p = Identity (k) }> (s, x)
        }""",
        [{"s": np.array(1, np.float32), "x": X.reshape(-1)[:4], "k": np.array([7, 8])}],
    ),
    "sequences": (
        """main (float[2,3] x)
            => (int64 n, float[a,b] first, float[c,d] joined, seq(float[e,f]) rest) {
            two = Constant <value = float {2}> ()
            y = Mul (x, two)
            s = SequenceConstruct (x, y, x)
            n = SequenceLength (s)
            m = Constant <value = int64 {-2}> ()
            first = SequenceAt (s, m)
            joined = ConcatFromSequence <axis = 1> (s)
            z = Constant <value = int64 {0}> ()
            rest = SequenceErase (s, z)
        }""",
        [{"x": X}],
    ),
    "split to sequence": (
        """main (float[2,3] x) => (seq(float[a]) rows, seq(float[b,c]) parts) {
            rows = SplitToSequence <axis = 0, keepdims = 0> (x)
            two = Constant <value = int64 {2}> ()
            parts = SplitToSequence <axis = 1> (x, two)
        }""",
        [{"x": X}],
    ),
    "stacked sequence": (
        """main (float[2,3] x) => (float[a,b,c] y) {
            s = SequenceConstruct (x, x)
            y = ConcatFromSequence <axis = 2, new_axis = 1> (s)
        }""",
        [{"x": X}],
    ),
    "map over a sequence, with an outer value": (
        """main (float[2,3] x, float[3] w) => (seq(float[a,b]) y) {
            s = SequenceConstruct (x, x)
            y = SequenceMap <body = b (float[a,b] e) => (float[a,b] r) { r = Add (e, w) }> (s)
        }""",
        [{"x": X, "w": np.array([1, 2, 3], np.float32)}],
    ),
    "optional": (
        """main (float[2,3] x) => (float[a,b] y, bool h) {
            o = Optional (x)
            y = OptionalGetElement (o)
            h = OptionalHasElement (o)
        }""",
        [{"x": X}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_control_flow_agrees_with_onnxruntime(name: str) -> None:
    check(name, "CPUExecutionProvider")


@pytest.mark.parametrize(
    "ep",
    [
        "OpenVINOExecutionProvider",
        pytest.param(
            "OpenCLExecutionProvider",
            marks=pytest.mark.skipif(not find_spec("pyopencl"), reason="pyopencl is missing"),
        ),
    ],
)
def test_a_body_on_another_ep_gets_the_rank_that_it_declares(ep: str) -> None:
    check("loop with a number and a condition of rank 1", ep)


def check(name: str, ep: str) -> None:
    text, feeds = CASES[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}')
    raw = model.SerializeToString()
    options = ort_lite.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    session = ort_lite.InferenceSession(raw, options, providers=[ep])
    session.disable_fallback()
    for feed in feeds:
        ours, theirs = session.run(None, feed), onnxruntime_answers(raw, feed)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, 0)


def test_scan_with_a_batch_pads_short_sequences() -> None:
    """Scan-8, which onnxruntime runs too: axis 0 is the batch, lengths differ."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 8]>
        main (int64[2] n, float[2,3] s, float[2,4,3] x) => (float[2,3] last, float[2,4,3] sums) {
            last, sums = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] e)
                => (float[3] t, float[3] o) { t = Add (a, e)
                                              o = Identity (t) }> (n, s, x)
        }""")
    feed = {
        "n": np.array([4, 2]),
        "s": np.ones((2, 3), np.float32),
        "x": np.arange(24, dtype=np.float32).reshape(2, 4, 3),
    }
    raw = model.SerializeToString()
    ours = ort_lite.InferenceSession(raw, providers=["CPUExecutionProvider"]).run(None, feed)
    for one, other in zip(ours, onnxruntime_answers(raw, feed), strict=True):
        same(one, other, 0)


def test_iterations_of_a_scan_give_results_of_one_shape() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[n] s, float[3] x) => (float[m] last, float[3,k] all) {
            last, all = Scan <num_scan_inputs = 1, body = b (float[i] a, float e)
                => (float[j] t, float[j] o) { minus = Constant <value_ints = [-1]> ()
                                              r = Reshape (e, minus)
                                              t = Concat <axis = 0> (a, r)
                                              o = Identity (t) }> (s, x)
        }""")
    feed = {"s": np.ones(2, np.float32), "x": np.ones(3, np.float32)}
    raw = model.SerializeToString()
    with pytest.raises(Exception, match="Scan"):
        onnxruntime_answers(raw, feed)
    session = ort_lite.InferenceSession(raw, providers=["CPUExecutionProvider"])
    with pytest.raises(ort_lite.RuntimeException, match=r"iteration 1 gives float32 \[4\] after"):
        session.run(None, feed)
