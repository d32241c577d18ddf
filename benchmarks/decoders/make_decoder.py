"""Decoders with random weights, as onnxruntime-genai's model builder exports language models.

    python -m benchmarks.decoders.make_decoder FOLDER --size 0.5b

The graph has the builder's operators, names and order: GatherBlockQuantized or Gather,
MatMulNBits, GroupQueryAttention with do_rotary, (Skip)SimplifiedLayerNormalization.
Weights are drawn and written one by one, so that a model of gigabytes needs little memory.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import onnx
from onnx import TensorProto, helper

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

CONTRIB = "com.microsoft"
CHUNK = 1 << 22
"""Elements drawn at a time."""
PAGE = 4096
"""Alignment of tensors in the file of weights, in bytes."""
WEIGHT_SIZE = 0.02
"""Standard deviation of weights, as models are initialised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """Sizes and forms of a decoder.

    Attributes:
        layers: How many.
        hidden: Width of the residual stream.
        heads, kv_heads: Heads of queries, and of keys and values.
        head_size: Width of a head.
        intermediate: Width of the gated layers.
        vocabulary: Tokens.
        positions: Rows of the tables of cosines and sines.
        bits: 4 or 8, of a weight.
        block: Weights that have a scale in common.
        zero_points: Whether blocks have zero points.
        packed: Whether one product makes queries, keys and values.
        quantised_embedding: Whether the embedding is the output layer's weights.
        last_only: Whether logits are computed for the last position alone.
        accuracy_level: Of MatMulNBits; 4 lets ONNX Runtime quantise activations.
        half: Whether activations, scales, caches and logits are float16, as for GPUs.
        softcap, window: Of GroupQueryAttention; 0 and -1 for none.
        experts: Gated layers to choose from, as one QMoE; 0 for a single one of MatMulNBits.
        chosen: Experts of a token.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    intermediate: int
    vocabulary: int
    positions: int = 32768
    bits: int = 4
    block: int = 32
    zero_points: bool = False
    packed: bool = False
    quantised_embedding: bool = True
    last_only: bool = True
    accuracy_level: int = 0
    half: bool = False
    softcap: float = 0.0
    window: int = -1
    experts: int = 0
    chosen: int = 4


SHAPES = {
    "tiny": DecoderShape(
        layers=2, hidden=64, heads=4, kv_heads=2, head_size=16, intermediate=160, vocabulary=256,
        positions=128,
    ),
    "0.5b": DecoderShape(
        layers=24, hidden=896, heads=14, kv_heads=2, head_size=64, intermediate=4864,
        vocabulary=151936,
    ),
    "1.5b": DecoderShape(
        layers=28, hidden=1536, heads=12, kv_heads=2, head_size=128, intermediate=8960,
        vocabulary=151936,
    ),
    "experts": DecoderShape(
        layers=12, hidden=1024, heads=16, kv_heads=4, head_size=64, intermediate=768,
        vocabulary=32768, experts=32,
    ),
}  # fmt: skip
"""Qwen2.5's two smallest shapes, one for tests, and one with experts that has 1e9 weights."""


def make_decoder(folder: Path, shape: DecoderShape, seed: int = 0) -> Path:
    """Write `model.onnx` and `model.onnx.data` to `folder`; equal arguments give equal bytes.

    Returns:
        The path of the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    with (folder / "model.onnx.data").open("wb") as data:
        writer = _Writer(shape, data, np.random.default_rng(seed))
        model = writer.write()
    onnx.save(model, path)
    return path


class _Writer:
    """Nodes and weights of one model."""

    def __init__(self, shape: DecoderShape, data: BinaryIO, random: np.random.Generator) -> None:
        self._shape, self._data, self._random = shape, data, random
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[TensorProto] = []
        self._floats_type = np.dtype(np.float16 if shape.half else np.float32)

    def write(self) -> onnx.ModelProto:
        shape = self._shape
        lengths, total = self._lengths()
        head = self._quantise_matrix("lm_head", shape.hidden, shape.vocabulary)
        hidden = self._embed(head)
        skip, pending = hidden, ""
        for layer in range(shape.layers):
            skip, pending = self._layer(layer, skip, pending, (lengths, total))
        normed, _ = self._normalise("/model/norm", "model.norm.weight", skip, pending)
        if shape.last_only:
            self._constant("last", np.array([-1], np.int64))
            normed = self._add("Gather", "/lm_head/last", [normed, "last"], axis=1)
        self._product("/lm_head/MatMul_Q4", normed, head, shape.vocabulary, output="logits")
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
        inputs, outputs = self._ports()
        graph = helper.make_graph(self._nodes, "main_graph", inputs, outputs, self._weights)
        return helper.make_model(graph, ir_version=10, opset_imports=opsets)

    def _ports(self) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
        shape, i64 = self._shape, TensorProto.INT64
        floats = helper.np_dtype_to_tensor_dtype(self._floats_type)
        info = helper.make_tensor_value_info
        past: list[str | int | None] = [
            "batch_size",
            shape.kv_heads,
            "past_sequence_length",
            shape.head_size,
        ]
        present: list[str | int | None] = [
            "batch_size",
            shape.kv_heads,
            "total_sequence_length",
            shape.head_size,
        ]
        rows = 1 if shape.last_only else "sequence_length"
        inputs = [
            info("input_ids", i64, ["batch_size", "sequence_length"]),
            info("attention_mask", i64, ["batch_size", "total_sequence_length"]),
        ]
        outputs = [info("logits", floats, ["batch_size", rows, shape.vocabulary])]
        for i in range(shape.layers):
            for kind in ("key", "value"):
                inputs.append(info(f"past_key_values.{i}.{kind}", floats, past))
                outputs.append(info(f"present.{i}.{kind}", floats, present))
        return inputs, outputs

    def _lengths(self) -> tuple[str, str]:
        """seqlens_k and total_sequence_length, from the mask, as the builder writes it."""
        base, mask = "/model/attn_mask_reformat/attn_mask_subgraph", "attention_mask"
        self._constant("one", np.array([1], np.int64))
        counts = self._add("ReduceSum", f"{base}/ReduceSum", [mask, "one"], keepdims=0)
        last = self._add("Sub", f"{base}/Sub", [counts, "one"])
        lengths = self._add("Cast", f"{base}/Sub/Cast", [last], to=TensorProto.INT32)
        sizes = self._add("Shape", f"{base}/Shape", [mask])
        self._constant("axis_1", np.array(1, np.int64))
        total = self._add("Gather", f"{base}/Gather", [sizes, "axis_1"], axis=0)
        return lengths, self._add("Cast", f"{base}/Gather/Cast", [total], to=TensorProto.INT32)

    def _embed(self, head: Sequence[str]) -> str:
        shape, name = self._shape, "/model/embed_tokens/Gather"
        if not shape.quantised_embedding:
            table = "model.embed_tokens.weight"
            self._floats(table, (shape.vocabulary, shape.hidden))
            return self._add("Gather", name, [table, "input_ids"])
        blocks, names = shape.hidden // shape.block, []
        columns = (shape.hidden * shape.bits // 8, blocks, blocks * shape.bits // 8)
        for weight, width in zip(self._weights[-len(head) :], columns, strict=False):
            rows = TensorProto()
            rows.CopyFrom(weight)  # the bytes of the output layer, by reference
            rows.name = f"{weight.name}.rows"
            del rows.dims[:]
            rows.dims.extend([shape.vocabulary, width])
            self._weights.append(rows)
            names.append(rows.name)
        rows_name, *steps = names
        return self._add(
            "GatherBlockQuantized", name + "BlockQuantized", [rows_name, "input_ids", *steps],
            domain=CONTRIB, bits=shape.bits, block_size=shape.block, gather_axis=0,
            quantize_axis=1,
        )  # fmt: skip

    def _layer(
        self, layer: int, skip: str, pending: str, lengths: tuple[str, str]
    ) -> tuple[str, str]:
        """One layer; the residual stream, and what is still to be added to it."""
        shape, base, own = self._shape, f"/model/layers.{layer}", f"model.layers.{layer}"
        normed, skip = self._normalise(
            f"{base}/input_layernorm", f"{own}.input_layernorm.weight", skip, pending
        )
        width, kv_width = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        sizes = {"q_proj": width, "k_proj": kv_width, "v_proj": kv_width}
        if shape.packed:
            sizes = {"qkv_proj": width + 2 * kv_width}
        made = [
            self._add_biased(f"{base}/attn/{name}", f"{own}.attn.{name}", normed, size)
            for name, size in sizes.items()
        ]
        attended = self._attend(layer, made, lengths)
        projected = self._linear(f"{base}/attn/o_proj", f"{own}.attn.o_proj", attended, width)
        normed, skip = self._normalise(
            f"{base}/post_attention_layernorm", f"{own}.post_attention_layernorm.weight", skip,
            projected,
        )  # fmt: skip
        if shape.experts:
            return skip, self._mix_experts(f"{base}/moe", f"{own}.moe", normed)
        return skip, self._gated_layer(f"{base}/mlp", f"{own}.mlp", normed)

    def _gated_layer(self, base: str, own: str, normed: str) -> str:
        shape = self._shape
        gate, up = (
            self._linear(
                f"{base}/{name}", f"{own}.{name}", normed, shape.hidden, shape.intermediate
            )
            for name in ("gate_proj", "up_proj")
        )
        smooth = self._add("Sigmoid", f"{base}/act_fn/Sigmoid", [gate])
        active = self._add("Mul", f"{base}/act_fn/Mul", [gate, smooth])
        gated = self._add("Mul", f"{base}/Mul", [active, up])
        return self._linear(f"{base}/down_proj", f"{own}.down_proj", gated, shape.intermediate)

    def _mix_experts(self, base: str, own: str, normed: str) -> str:
        """A router, and the weighted sum of the experts that it chooses."""
        shape, width = self._shape, 2 * self._shape.intermediate
        self._floats(f"{own}.router.weight", (shape.hidden, shape.experts))
        scores = self._add("MatMul", f"{base}/router/MatMul", [normed, f"{own}.router.weight"])
        self._constant(f"{own}.shape", np.array([-1, shape.experts], np.int64))
        rows = self._add("Reshape", f"{base}/router/Reshape", [scores, f"{own}.shape"])
        inputs, zeros = [normed, rows], []
        for name, depth, columns in (
            ("gate_up_proj", shape.hidden, width), ("down_proj", shape.intermediate, shape.hidden),
        ):  # fmt: skip
            weights, scales, *more = self._quantise_experts(f"{own}.{name}", depth, columns)
            self._put(f"{own}.{name}.bias", WEIGHT_SIZE * self._draw((shape.experts, columns)))
            inputs += [weights, scales, f"{own}.{name}.bias"]
            zeros += more
        inputs += ["", "", "", *zeros] if zeros else []
        return self._add(
            "QMoE", f"{base}/QMoE", inputs, domain=CONTRIB, k=shape.chosen,
            activation_type="swiglu", swiglu_fusion=1, swiglu_limit=7.0, activation_alpha=1.702,
            activation_beta=1.0, normalize_routing_weights=1, expert_weight_bits=shape.bits,
            block_size=shape.block,
        )  # fmt: skip

    def _quantise_experts(self, name: str, depth: int, width: int) -> list[str]:
        """Weights [experts, width, bytes], scales, and maybe zero points of one projection."""
        shape, first = self._shape, len(self._weights)
        names = self._quantise_matrix(name, depth, shape.experts * width)
        blocks = depth // shape.block
        columns = (depth * shape.bits // 8, blocks, -(-blocks * shape.bits // 8))
        for weight, each in zip(self._weights[first:], columns, strict=False):
            del weight.dims[:]
            weight.dims.extend([shape.experts, width, each])
        return names

    def _attend(self, layer: int, made: Sequence[str], lengths: tuple[str, str]) -> str:
        shape = self._shape
        if layer == 0:
            half = shape.head_size // 2
            angles = np.outer(np.arange(shape.positions), 1e6 ** (-np.arange(half) / half))
            self._constant("cos_cache", np.cos(angles).astype(np.float32))
            self._constant("sin_cache", np.sin(angles).astype(np.float32))
        caches = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        name = f"/model/layers.{layer}/attn/GroupQueryAttention"
        outputs = [f"{name}/output_0", f"present.{layer}.key", f"present.{layer}.value"]
        inputs = [*made, *[""] * (3 - len(made)), *caches, *lengths, "cos_cache", "sin_cache"]
        self._nodes.append(
            helper.make_node(
                "GroupQueryAttention", inputs, outputs, name=name, domain=CONTRIB,
                num_heads=shape.heads, kv_num_heads=shape.kv_heads, do_rotary=1,
                rotary_interleaved=0, scale=shape.head_size**-0.5, softcap=shape.softcap,
                local_window_size=shape.window,
            )
        )  # fmt: skip
        return outputs[0]

    def _normalise(self, name: str, weight: str, skip: str, pending: str) -> tuple[str, str]:
        """The normalised sum, and the sum."""
        self._put(weight, 1 + WEIGHT_SIZE * self._draw(self._shape.hidden))
        if not pending:
            kind, inputs = "SimplifiedLayerNormalization", [skip, weight]
            normed = self._add(
                kind, f"{name}/LayerNorm", inputs, axis=-1, epsilon=1e-6, stash_type=1
            )
            return normed, skip
        outputs = [f"{name}/SkipLayerNorm/output_0", "", "", f"{name}/SkipLayerNorm/output_3"]
        last = name == "/model/norm"
        self._nodes.append(
            helper.make_node(
                "SkipSimplifiedLayerNormalization", [skip, pending, weight],
                outputs[:1] if last else outputs, name=f"{name}/SkipLayerNorm", domain=CONTRIB,
                epsilon=1e-6,
            )
        )  # fmt: skip
        return outputs[0], outputs[3]

    def _add_biased(self, name: str, weight: str, x: str, width: int) -> str:
        product = self._linear(name, weight, x, self._shape.hidden, width)
        self._put(f"{weight}.Add.bias", WEIGHT_SIZE * self._draw(width))
        return self._add("Add", f"{name}/Add", [product, f"{weight}.Add.bias"])

    def _linear(self, name: str, weight: str, x: str, depth: int, width: int = 0) -> str:
        width = width or self._shape.hidden
        weights = self._quantise_matrix(f"{weight}.MatMul", depth, width)
        return self._product(f"{name}/MatMul_Q4", x, weights, width, depth)

    def _product(
        self, name: str, x: str, weights: Sequence[str], width: int, depth: int = 0,
        output: str = "",
    ) -> str:  # fmt: skip
        shape = self._shape
        return self._add(
            "MatMulNBits", name, [x, *weights], output, domain=CONTRIB,
            K=depth or shape.hidden, N=width, bits=shape.bits, block_size=shape.block,
            accuracy_level=shape.accuracy_level,
        )  # fmt: skip

    def _quantise_matrix(self, name: str, depth: int, width: int) -> list[str]:
        """Names of weights, scales and maybe zero points of a matrix [width, depth]."""
        shape, blocks = self._shape, -(-depth // self._shape.block)
        row = (width, blocks, shape.block * shape.bits // 8)
        names = [f"{name}.weight_Q{shape.bits}", f"{name}.weight_scales"]
        self._stream(names[0], row, TensorProto.UINT8)
        spread = (1 << shape.bits) / 12**0.5  # of evenly distributed steps
        scale = WEIGHT_SIZE / spread * self._random.uniform(0.5, 1.5, (width * blocks,))
        self._put(names[1], scale.astype(np.float32))
        if shape.zero_points:
            names.append(f"{name}.weight_zp")
            middle = 0x77 if shape.bits == 4 else 0x7F
            noise = self._random.integers(0, 2, (width * (-(-blocks * shape.bits // 8)),), np.uint8)
            self._put(names[2], middle + noise * (0x11 if shape.bits == 4 else 1))
        return names

    def _add(
        self,
        op_type: str,
        name: str,
        inputs: Sequence[str],
        output: str = "",
        **fields: Any,  # noqa: ANN401 - as make_node has it
    ) -> str:
        output = output or f"{name}/output_0"
        self._nodes.append(helper.make_node(op_type, inputs, [output], name=name, **fields))
        return output

    def _draw(self, shape: int | tuple[int, ...]) -> Array:
        return self._random.standard_normal(shape, np.float32)

    def _constant(self, name: str, value: Array) -> None:
        """A constant; one of few elements in the model itself."""
        if value.size > 16:
            self._put(name, value)
        else:
            self._weights.append(onnx.numpy_helper.from_array(value, name))

    def _put(self, name: str, value: Array) -> None:
        """A constant in the file of weights, in the model's float type if it has floats."""
        value = value.astype(self._floats_type) if value.dtype.kind == "f" else value
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        self._store(name, kind, value.shape, [value.tobytes()])

    def _floats(self, name: str, dims: Sequence[int]) -> None:
        kind, drawn = self._floats_type, ((WEIGHT_SIZE * self._draw(n)) for n in _chunks(dims))
        pieces = (values.astype(kind).tobytes() for values in drawn)
        self._store(name, helper.np_dtype_to_tensor_dtype(kind), dims, pieces)

    def _stream(self, name: str, dims: Sequence[int], kind: int) -> None:
        self._store(name, kind, dims, (self._random.bytes(n) for n in _chunks(dims)))

    def _store(self, name: str, kind: int, dims: Sequence[int], pieces: Iterable[bytes]) -> None:
        self._data.write(bytes(-self._data.tell() % PAGE))
        offset, size = self._data.tell(), 0
        for piece in pieces:
            size += self._data.write(piece)
        tensor = TensorProto(name=name, data_type=kind, dims=dims)
        tensor.data_location = TensorProto.EXTERNAL
        fields = {"location": "model.onnx.data", "offset": offset, "length": size}
        for key, value in fields.items():
            tensor.external_data.add(key=key, value=str(value))
        self._weights.append(tensor)


def _chunks(dims: Sequence[int]) -> Iterator[int]:
    rest = int(np.prod(dims, dtype=np.int64))
    while rest:
        yield min(rest, CHUNK)
        rest -= min(rest, CHUNK)


def main(arguments: Sequence[str]) -> None:
    """Write the model that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SHAPES, default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bits", type=int, choices=(4, 8), default=4)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--zero-points", action="store_true")
    parser.add_argument("--packed", action="store_true", help="one product for q, k and v")
    parser.add_argument("--all-logits", action="store_true", help="logits of every position")
    parser.add_argument("--accuracy-level", type=int, default=0)
    parser.add_argument("--float16", action="store_true", help="as the builder writes for GPUs")
    options = parser.parse_args(arguments)
    shape = replace(
        SHAPES[options.size], bits=options.bits, block=options.block,
        zero_points=options.zero_points, packed=options.packed, last_only=not options.all_logits,
        accuracy_level=options.accuracy_level, half=options.float16,
    )  # fmt: skip
    sys.stdout.write(f"{make_decoder(options.folder, shape, options.seed)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
