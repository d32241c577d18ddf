"""EPContext nodes with odd attributes, and payloads that are something else."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
from onnx import helper

from attacks.attack import Engine, WrongAnswerError, add
from attacks.on_models import X, Y, model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Change: TypeAlias = "Callable[[onnx.ModelProto, onnx.NodeProto, Path], object]"
ENGINES = ("openvino", "opencl")


def compiled(engine: Engine, *, embed: bool) -> Path:
    """The context model of Relu(x + b), in the case's folder; compiled once in a process."""
    kept = engine.folder.parent / ("embedded" if embed else "external")
    if not kept.is_dir():
        kept.mkdir()
        options = engine.options()
        options.add_provider(engine.provider, {})
        compiler = engine.ort.ModelCompiler(options, model().SerializeToString(), embed)
        compiler.compile_to_file(kept / "c.onnx")
    for file in kept.iterdir():
        shutil.copyfile(file, engine.folder / file.name)
    return engine.folder / "c.onnx"


def attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto:
    return next(one for one in node.attribute if one.name == name)


def put(name: str, value: Any) -> Change:
    """Set an attribute; None removes it."""

    def change(_: onnx.ModelProto, node: onnx.NodeProto, __: Path) -> None:
        for one in [one for one in node.attribute if one.name == name]:
            node.attribute.remove(one)
        if value is not None:
            node.attribute.append(helper.make_attribute(name, value))

    return change


def unsealed(node: onnx.NodeProto) -> None:
    """Make it another producer's, whose attributes nobody has sealed."""
    for one in [one for one in node.attribute if one.name == "notes"]:
        node.attribute.remove(one)


def case(name: str, change: Change, *, embed: bool = False) -> None:
    """Sealed and unsealed: the answer stays right, or the error is typed."""
    for sealed in (True, False):

        def run(engine: Engine, sealed: bool = sealed) -> None:  # noqa: FBT001 - bound to this turn
            path = compiled(engine, embed=embed)
            proto = onnx.load(path, load_external_data=False)
            (node,) = [one for one in proto.graph.node if one.op_type == "EPContext"]
            if not sealed:
                unsealed(node)
            change(proto, node, path)
            path.write_bytes(proto.SerializeToString())
            with engine.session(str(path)) as session:
                feed = {one.name: X for one in session.get_inputs()}
                for found in session.run(None, feed):
                    if not np.allclose(found, Y):
                        raise WrongAnswerError(str(found))

        what = "sealed" if sealed else "unsealed"
        add(f"contexts: {name}, {what}", run, engines=ENGINES)


def payload(change: Callable[[Path, Path], object]) -> Change:
    """Do something to the payload's file; gets it and the folder."""

    def changed(_: onnx.ModelProto, node: onnx.NodeProto, path: Path) -> None:
        name = attribute(node, "ep_cache_context").s.decode()
        change(path.parent / name, path.parent)

    return changed


def outside(file: Path, folder: Path) -> None:
    """The payload in another folder, and a symlink to it."""
    other = folder.parent / f"{folder.name}_other"
    other.mkdir()
    shutil.move(file, other / file.name)
    file.symlink_to(other / file.name)


def swap_ends(_: onnx.ModelProto, node: onnx.NodeProto, __: Path) -> None:
    node.input[0], node.output[0] = node.output[0], node.input[0]


def other_model(proto: onnx.ModelProto, node: onnx.NodeProto, path: Path) -> None:
    """The payload of -x, under the same name."""
    file = path.parent / attribute(node, "ep_cache_context").s.decode()
    there = path.parent / "other"
    there.mkdir()
    options_of = compiled_of(there, node)
    shutil.copyfile(options_of, file)


def compiled_of(folder: Path, node: onnx.NodeProto) -> Path:
    import ort_lite  # noqa: PLC0415 - where onnxruntime is tried it is not wanted

    options = ort_lite.SessionOptions()
    options.add_provider(attribute(node, "source").s.decode(), {})
    proto = model([helper.make_node("Neg", ["x"], ["y"])], weights=[])
    path = folder / "o.onnx"
    ort_lite.ModelCompiler(options, proto.SerializeToString()).compile_to_file(path)
    (found,) = [one for one in folder.iterdir() if one.suffix == ".bin"]
    return found


def second_node(proto: onnx.ModelProto, node: onnx.NodeProto, _: Path) -> None:
    copy = proto.graph.node.add()
    copy.CopyFrom(node)
    copy.output[0] = "z"
    copy.name = node.name + "_2"
    proto.graph.output.add().CopyFrom(proto.graph.output[0])
    proto.graph.output[-1].name = "z"


def same_node_twice(proto: onnx.ModelProto, node: onnx.NodeProto, _: Path) -> None:
    proto.graph.node.add().CopyFrom(node)


def two_sources(proto: onnx.ModelProto, node: onnx.NodeProto, path: Path) -> None:
    second_node(proto, node, path)
    attribute(proto.graph.node[-1], "source").s = b"NoSuchExecutionProvider"


def own_cycle(_: onnx.ModelProto, node: onnx.NodeProto, __: Path) -> None:
    node.input[0] = node.output[0]


def more_inputs(_: onnx.ModelProto, node: onnx.NodeProto, __: Path) -> None:
    node.input.extend([node.input[0]] * 3)


def fewer_inputs(_: onnx.ModelProto, node: onnx.NodeProto, __: Path) -> None:
    del node.input[:]


def more_outputs(_: onnx.ModelProto, node: onnx.NodeProto, __: Path) -> None:
    node.output.append("more")


def input_type(proto: onnx.ModelProto, _: onnx.NodeProto, __: Path) -> None:
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT32


def input_shape(proto: onnx.ModelProto, _: onnx.NodeProto, __: Path) -> None:
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 7


def no_input_type(proto: onnx.ModelProto, _: onnx.NodeProto, __: Path) -> None:
    proto.graph.input[0].ClearField("type")


def no_domain(proto: onnx.ModelProto, _: onnx.NodeProto, __: Path) -> None:
    for one in [one for one in proto.opset_import if one.domain]:
        proto.opset_import.remove(one)


def fifo(file: Path, _: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder_there(file: Path, _: Path) -> None:
    file.unlink()
    file.mkdir()


for _name, _values in {
    "main_context": (0, 2, -1, 2**62, 1.0, "1", None),
    "embed_mode": (1, 2, -1, 2**62, 0.0, None),
    "source": ("", "NoSuchExecutionProvider", "CPUExecutionProvider", "Open\0VINO", 1, None),
    "partition_name": ("", "nosuch", "../x", "a" * 100_000, "\n", 1, None),
    "max_size": (-1, 1, 2**62, "1"),
    "ep_sdk_version": ("", "0.0.0", "9999", "\0", 1, None),
    "hardware_architecture": ("", "z80", 1, None),
    "onnx_model_filename": ("", "/etc/passwd", 1, None),
    "notes": ("", "{", "{}", "[]", '{"ort_lite": 1}', '{"ort_lite": 99}', "[" * 50_000, 1),
    "ep_cache_context": (
        *("", ".", "..", "/", "/etc/passwd", "/dev/zero", "../c.bin", "a/../../c.bin", "c.onnx"),
        *("nosuch.bin", "a\0b", "C:\\x.bin", "\\\\host\\x", "x" * 10_000, "a/" * 5_000, "\u202e"),
        *("file:///etc/passwd", "~", "$HOME", "./", " ", 1, None),
    ),
    "nosuch": ("x",),
}.items():
    for _value in _values:
        _text = ascii(_value) if len(str(_value)) < 40 else f"{str(_value)[:4]}..."
        case(f"{_name} is {_text}", put(_name, _value))
        if _name in ("ep_cache_context", "main_context"):
            case(f"{_name} is {_text} where it is embedded", put(_name, _value), embed=True)

case("payload is empty", payload(lambda file, _: file.write_bytes(b"")))
case("payload is zeros", payload(lambda file, _: file.write_bytes(bytes(100_000))))
case("payload is random", payload(lambda file, _: file.write_bytes(bytes(range(256)) * 99)))
case("payload is cut", payload(lambda file, _: os.truncate(file, file.stat().st_size // 2)))
case("payload has more", payload(lambda file, _: file.write_bytes(file.read_bytes() + b"more")))
case("payload is gone", payload(lambda file, _: file.unlink()))
case("payload is a folder", payload(folder_there))
if os.name == "posix":  # Windows has no FIFOs among its files, and symlinks ask for a privilege
    case("payload is a FIFO", payload(fifo))
    case("payload is a symlink out of the folder", payload(outside))
    case("payload is a symlink to itself", payload(lambda f, _: (f.unlink(), f.symlink_to(f))))
    case(
        "payload is a symlink to /dev/zero",
        payload(lambda f, _: (f.unlink(), f.symlink_to("/dev/zero"))),
    )
case("payload is the context model", payload(lambda f, d: shutil.copyfile(d / "c.onnx", f)))
case("payload is another model's", other_model)
case("ends are swapped", swap_ends)
case("a second node with one payload", second_node)
case("the node is there twice", same_node_twice)
case("a second source", two_sources)
case("the node uses its own output", own_cycle)
case("more inputs", more_inputs)
case("no inputs", fewer_inputs)
case("more outputs", more_outputs)
case("input of another type", input_type)
case("input of another shape", input_shape)
case("input without a type", no_input_type)
case("no import of com.microsoft", no_domain)
