"""Recorded cases: control flow, sequences and optionals, as models of several nodes."""

from __future__ import annotations

import numpy as np
from parity.realistic.case import model
from parity.realistic.drawn import normal, one

IF = """g (float[40,50] x, bool c) => (float[40,50] y) {
  y = If(c) <then_branch = t () => (float[40,50] a) { a = Exp(x) },
             else_branch = e () => (float[40,50] b) { b = Neg(x) }>
}"""

LOOP = """g (int64 n, float[64] x) => (float[64] y, float[s,64] all) {
  c = Constant<value = bool {1}>()
  y, all = Loop(n, c, x) <body = b (int64 i, bool on, float[64] h) =>
      (bool go, float[64] next, float[64] out) {
    go = Identity(on)
    k = Constant<value = float {0.9}>()
    t = Mul(h, k)
    next = Sin(t)
    out = Add(next, t)
  }>
}"""

STOPPING = """g (int64 n, float[1] x) => (float[1] y, float[s,1] all) {
  y, all = Loop(n, , x) <body = b (int64 i, bool on, float[1] h) =>
      (bool go, float[1] next, float[1] out) {
    k = Constant<value_floats = [1.5]>()
    most = Constant<value = float {100.0}>()
    next = Mul(h, k)
    out = Add(next, h)
    small = Less(next, most)
    shape = Constant<value_ints = [0]>()
    go = Squeeze(small, shape)
  }>
}"""

SCAN = """g (float[64] x, float[50,64] r) => (float[64] y, float[50,64] all) {
  y, all = Scan <num_scan_inputs = 1, body = b (float[64] h, float[64] v) =>
      (float[64] next, float[64] out) {
    s = Add(h, v)
    next = Tanh(s)
    out = Mul(next, v)
  }> (x, r)
}"""

BACKWARDS = """g (float[8] x, float[8,30] r) => (float[8] y, float[8,30] all) {
  y, all = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                 scan_input_directions = [1], scan_output_directions = [1],
                 body = b (float[8] h, float[8] v) => (float[8] next, float[8] out) {
    next = Add(h, v)
    out = Neg(next)
  }> (x, r)
}"""

CONSTRUCT = """g (float[8,9] a, float[8,9] b) => (float[r,c] y, int64 n) {
  s = SequenceConstruct(a, b, a)
  n = SequenceLength(s)
  t = SequenceErase(s)
  y = ConcatFromSequence<axis = 1>(t)
}"""

SPLIT = """g (float[40,9] x) => (float[r,9] y) {
  k = Constant<value_ints = [10, 25, 5]>()
  s = SplitToSequence<axis = 0>(x, k)
  i = Constant<value = int64 {1}>()
  y = SequenceAt(s, i)
}"""

INSERT = """g (float[8,9] a) => (float[2,8,9] y) {
  s = SequenceEmpty()
  t = SequenceInsert(s, a)
  b = Neg(a)
  u = SequenceInsert(t, b)
  y = ConcatFromSequence<axis = 0, new_axis = 1>(u)
}"""

MAP = """g (float[8,9] a, float[8,9] b) => (float[r,9] y) {
  s = SequenceConstruct(a, b)
  t = SequenceMap(s) <body = m (float[8,9] x) => (float[8,9] z) { z = Exp(x) }>
  y = ConcatFromSequence<axis = 0>(t)
}"""

OPTIONAL = """g (float[8,9] a) => (float[8,9] y, bool h) {
  o = Optional(a)
  h = OptionalHasElement(o)
  y = OptionalGetElement(o)
}"""

SMALL = normal(8, 9)

CASES = (
    model("If", IF, normal(40, 50), one(1, np.bool_)),
    model("If", IF, normal(40, 50), one(0, np.bool_), what="otherwise", rtol=0),
    model("Loop", LOOP, one(30, np.int64), normal(64)),
    model("Loop", STOPPING, one(30, np.int64), np.ones(1, np.float32), what="until"),
    model("Scan", SCAN, normal(64), normal(50, 64)),
    model("Scan", BACKWARDS, normal(8), normal(8, 30), what="backwards"),
    model("SequenceConstruct", CONSTRUCT, SMALL, SMALL, rtol=0),
    model("SplitToSequence", SPLIT, normal(40, 9), rtol=0),
    model("SequenceInsert", INSERT, SMALL, rtol=0),
    model("SequenceMap", MAP, SMALL, SMALL),
    model("Optional", OPTIONAL, SMALL, rtol=0),
)
