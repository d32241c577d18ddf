"""Writes models that PyTorch's exporters make, for wild.py: architectures that nobody tuned for.

`python export_models.py FOLDER [--only TEXT]` needs an environment of its own, with torch,
torchvision, timm, transformers, onnxscript and onnxruntime (3 GB, and nothing of this project).
Then `python -m benchmarks.wild.wild --models FOLDER` measures them. Weights are random, sizes are
small. Some models are exported with free dimensions, and some are quantised by onnxruntime's tools.
The inputs of NAME.onnx are in NAME.npz.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import timm
import torch
import torchvision
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPSET = 17
TORCHVISION = (
    *("mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0", "densenet121"),
    *("regnet_y_400mf", "googlenet", "squeezenet1_1", "convnext_tiny", "swin_t"),
)
TIMM = (
    *("mobilevit_xs", "ghostnet_100", "hardcorenas_a", "levit_128s", "edgenext_xx_small"),
    *("fastvit_t8", "repvgg_a0", "tf_efficientnetv2_b0", "coatnet_nano_rw_224", "poolformer_s12"),
    *("efficientformer_l1", "xcit_nano_12_p16_224", "mobilenetv4_conv_small", "convnextv2_atto"),
    *("lcnet_050", "mambaout_femto", "hrnet_w18_small", "tiny_vit_5m_224"),
)
SMALL = {
    "vocab_size": 1000,
    "hidden_size": 192,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "intermediate_size": 512,
}
TEXT = {
    "bert": (transformers.BertConfig, transformers.BertModel),
    "roberta": (transformers.RobertaConfig, transformers.RobertaModel),
    "albert": (transformers.AlbertConfig, transformers.AlbertModel),
    "electra": (transformers.ElectraConfig, transformers.ElectraModel),
    "mpnet": (transformers.MPNetConfig, transformers.MPNetModel),
    "deberta_v2": (transformers.DebertaV2Config, transformers.DebertaV2Model),
}
LAYERS = {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6}
STATES = {"vocab_size": 1000, "hidden_size": 128, "num_hidden_layers": 2, "use_cache": False}
NO_CACHE = {**SMALL, "use_cache": False}
WINDOWS = {"image_size": 64, "patch_size": 4, "embed_dim": 48, "window_size": 4}
STAGES = {"depths": [2, 2], "num_heads": [3, 6]}
PATCHES = {"image_size": 64, "patch_size": 8}
READERS: dict[str, dict[str, Any]] = {
    "Funnel": {"vocab_size": 1000, "d_model": 192, "n_head": 6, "d_head": 32, "d_inner": 512},
    "ModernBert": {**SMALL, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "Longformer": {**SMALL, "attention_window": [16] * 4},
    "BigBird": {**SMALL, "attention_type": "original_full"},
    "ConvBert": {**SMALL, "embedding_size": 192},
    "RoFormer": {**SMALL, "embedding_size": 192},
    "Yoso": SMALL,
    "MegatronBert": SMALL,
    "IBert": SMALL,
    "Mistral": {**NO_CACHE, "num_key_value_heads": 2},
    "Phi": NO_CACHE,
    "GPTNeoX": NO_CACHE,
    "Mamba": STATES,
    "Rwkv": {**STATES, "attention_hidden_size": 128},
}
"""Models of transformers that read tokens, by the name before Config and Model."""
SEERS: dict[str, dict[str, Any]] = {
    "Swin": {**WINDOWS, **STAGES},
    "Swinv2": {**WINDOWS, **STAGES},
    "Dinov2": {**PATCHES, **LAYERS},
    "Beit": {**PATCHES, **LAYERS, "use_relative_position_bias": True},
    "FocalNet": {"image_size": 64, "embed_dim": 48, "depths": [2, 2], "focal_windows": [3, 3]},
    "PoolFormer": {"depths": [1] * 4, "hidden_sizes": [32, 64, 96, 128]},
    "RegNet": {"hidden_sizes": [32, 64, 96, 128], "depths": [1, 1, 2, 1], "groups_width": 16},
    "PvtV2": {"image_size": 64},
}
"""The same that see images."""
QUANTISED = ("bert", "mpnet", "lstm", "gru")
"""Beginnings of the names of models that are written with 8-bit weights, too."""

Exported = tuple[str, nn.Module, dict[str, torch.Tensor], dict[str, dict[int, str]]]
"""Name, model, inputs by name, and names of free dimensions by input and axis."""


class First(nn.Module):
    """A model of transformers that takes tensors in order and returns its first output."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """The first output."""
        return self.model(**dict(zip(self.names, tensors, strict=True)), return_dict=True)[0]


class Recurrent(nn.Module):
    """Two layers of a recurrence, and a projection."""

    def __init__(self, kind: type[nn.RNNBase], *, bidirectional: bool) -> None:
        super().__init__()
        self.steps = kind(40, 64, 2, batch_first=True, bidirectional=bidirectional)
        self.last = nn.Linear(128 if bidirectional else 64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, time, 40) to (batch, time, 10)."""
        return self.last(self.steps(x)[0])


def images() -> Iterator[Exported]:
    """Networks of torchvision and timm, with known shapes."""
    for name in TORCHVISION:
        options = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
        model = getattr(torchvision.models, name)(weights=None, **options)
        yield name, model, {"x": torch.randn(1, 3, 224, 224)}, {}
    for name in TIMM:
        model = timm.create_model(name, pretrained=False, exportable=True)
        yield name, model, {"x": torch.randn(1, *model.default_cfg["input_size"])}, {}


def texts() -> Iterator[Exported]:
    """Encoders and decoders of transformers, with free and with known shapes."""
    names = ("input_ids", "attention_mask")
    inputs = {
        "input_ids": torch.randint(5, 900, (1, 48)),
        "attention_mask": torch.ones(1, 48, dtype=torch.long),
    }
    free = {name: {0: "batch", 1: "sequence"} for name in names}
    for name, (config, model) in TEXT.items():
        made = First(model(config(**SMALL)), names)
        yield name, made, inputs, {}
        yield f"{name}_free", made, inputs, free


def architectures() -> Iterator[Exported]:
    """Other models of transformers, each with known and with free shapes."""
    ids = {
        "input_ids": torch.randint(5, 900, (1, 64)),
        "attention_mask": torch.ones(1, 64, dtype=torch.long),
    }
    image = {"pixel_values": torch.randn(1, 3, 64, 64)}
    every = [(name, options, ids) for name, options in READERS.items()]
    every += [(name, options, image) for name, options in SEERS.items()]
    for name, options, inputs in every:
        config = getattr(transformers, f"{name}Config")(**options)
        made = First(getattr(transformers, f"{name}Model")(config), tuple(inputs))
        free = {
            key: {0: "batch", 1: "sequence"}
            if tensor.dim() < image["pixel_values"].dim()
            else {0: "batch"}
            for key, tensor in inputs.items()
        }
        yield f"{name.lower()}_known", made, inputs, {}
        yield f"{name.lower()}_free", made, inputs, free


def sounds() -> Iterator[Exported]:
    """Recurrences and a speech encoder with a free length."""
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for bidirectional in (False, True):
            name = kind.__name__.lower() + ("_both_ways" if bidirectional else "")
            made = Recurrent(kind, bidirectional=bidirectional)
            yield name, made, {"x": torch.randn(1, 100, 40)}, {"x": {0: "batch", 1: "time"}}
    config = transformers.Wav2Vec2Config(**{**SMALL, "vocab_size": 40}, conv_dim=(64,) * 7)
    made = First(transformers.Wav2Vec2ForCTC(config), ("input_values",))
    yield "wav2vec2", made, {"input_values": torch.randn(1, 16000)}, {"input_values": {1: "time"}}


def write(folder: Path, exported: Exported) -> Iterator[str]:
    """Write a model and its inputs, and its quantised form; yields the names of files."""
    name, model, inputs, free = exported
    path = folder / f"{name}.onnx"
    with torch.no_grad():
        torch.onnx.export(
            model.eval(),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            dynamic_axes=free,
            opset_version=OPSET,
            dynamo=False,
        )
    written = [path]
    if name.startswith(QUANTISED):
        written.append(folder / f"{name}_int8.onnx")
        quantize_dynamic(path, written[-1], weight_type=QuantType.QInt8)
    for file in written:
        taken = {info.name for info in onnx.load(file, load_external_data=False).graph.input}
        feed = {key: tensor.numpy() for key, tensor in inputs.items() if key in taken}
        np.savez(file.with_suffix(".npz"), **feed)
        yield file.name


def main() -> int:
    """Export one after another; 1 if one could not be exported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="those whose names contain this")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    failed = False
    sources: tuple[Callable[[], Iterator[Exported]], ...]
    sources = (images, texts, architectures, sounds)
    for exported in (one for source in sources for one in source()):
        if arguments.only not in exported[0]:
            continue
        try:
            print(*write(arguments.folder, exported), flush=True)
        # torch has many kinds of errors for models that it cannot export.
        except Exception as exc:  # noqa: BLE001 - see above
            failed = True
            reason: Any = (str(exc).strip() or type(exc).__name__).splitlines()[0]
            print(f"{exported[0]}: not exported: {reason}", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
