"""3x3 convolutions by Winograd's transforms: which, with what numbers, and that one can tell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from opencl_devices import all_devices, cpu_names
from winograd_models import block, convolution, draw

import ort_lite as ort
from eps.opencl.compile.winograd import (
    BYTES_PER_TILE,
    MOST_BYTES,
    POINTS,
    Extent,
    choose_outputs,
    transform_of,
)
from eps.opencl.runtime.device import HALF
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import onnx

OPENCL = "OpenCLExecutionProvider"
FOUND = all_devices()
DEVICES = cpu_names()
ABLE = [f.name for f in FOUND if HALF in f.device.extensions.split()]


def opened(proto: onnx.ModelProto | Path, device: str, **options: str) -> ort.InferenceSession:
    source = proto if not hasattr(proto, "SerializeToString") else proto.SerializeToString()
    return ort.InferenceSession(source, providers=[(OPENCL, {"device": device, **options})])


def notes(session: ort.InferenceSession) -> list[str]:
    return [note for part in session.explain().partitions for note in part.notes]


def by_winograd(outputs: int, count: int = 1) -> str:
    return f"3x3 convolutions as Winograd's F({outputs}x{outputs}, 3x3): {count}"


def assert_near(found: Sequence[Any], proto: onnx.ModelProto, feed: dict[str, Any]) -> None:
    """Within 1e-5 of the largest value of onnxruntime's."""
    right = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, feed)
    for mine, theirs in zip(found, right, strict=True):
        bound = 1e-5 * float(np.abs(theirs).max())
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=bound)


def image(*shape: int) -> dict[str, Any]:
    return {"x": draw(np.random.default_rng(1), *shape)}


@pytest.mark.parametrize("outputs", POINTS)
def test_a_transform_is_the_convolution_of_its_tile(outputs: int) -> None:
    random, transform = np.random.default_rng(outputs), transform_of(outputs)
    edge = outputs + 2
    tile, weights = random.standard_normal((edge, edge)), random.standard_normal((1, 1, 3, 3))
    at_points = transform.image @ tile @ transform.image.T
    product = at_points * transform.weights_at_points(weights).reshape(edge, edge)
    windows = np.lib.stride_tricks.sliding_window_view(tile, (3, 3))
    right = np.einsum("rcij,ij->rc", windows, weights[0, 0])
    np.testing.assert_allclose(
        transform.result @ product @ transform.result.T, right, rtol=1e-5, atol=1e-5
    )


def extent(side: int, depth: int, width: int) -> Extent:
    return Extent(images=1, rows=side, columns=side, depth=depth, width=width)


def test_large_tiles_are_for_weights_that_stay_small() -> None:
    """4 times the room is 192 KiB for each tile and 16 MiB at most; beyond it is 16/9."""
    assert choose_outputs(extent(56, 64, 64)) == 4
    assert choose_outputs(extent(28, 128, 128)) == 4
    assert choose_outputs(extent(14, 256, 256)) == 2
    assert choose_outputs(extent(7, 512, 512)) == 2
    assert choose_outputs(extent(28, 256, 256)) == 4
    most = MOST_BYTES // (4 * 36 * 256)
    assert choose_outputs(extent(56, 256, most)) == 4
    assert choose_outputs(extent(56, 256, most + 1)) == 2
    each = 16 * BYTES_PER_TILE // (4 * 36 * 128)
    assert choose_outputs(extent(14, 128, each)) == 4
    assert choose_outputs(extent(14, 128, each + 1)) == 2


def test_what_transforms_cost_more_than_they_save_stays_as_it_is() -> None:
    """Few channels, few pixels, an image smaller than a tile."""
    assert choose_outputs(extent(160, 8, 8)) is None
    assert choose_outputs(extent(2, 512, 512)) is None
    assert choose_outputs(extent(1, 64, 64)) is None


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "width", "pads", "outputs"),
    [
        pytest.param((1, 32, 16, 20), 48, (1, 1, 1, 1), 4, id="whole-tiles"),
        pytest.param((2, 37, 13, 15), 43, (1, 0, 2, 1), 4, id="odd-sizes-uneven-pads-two-images"),
        pytest.param((1, 64, 8, 40), 40, (0, 0, 0, 0), 4, id="no-pads-a-row-of-tiles-moved"),
        pytest.param((3, 64, 2, 29), 64, (1, 1, 1, 1), 2, id="rows-fewer-than-a-large-tile"),
        pytest.param((1, 200, 7, 9), 160, (1, 1, 1, 1), 2, id="large-weights"),
        pytest.param((2, 32, 67, 101), 40, (1, 1, 1, 1), 4, id="more-tiles-than-a-cache-holds"),
    ],
)
def test_any_size_gives_onnxruntimes_numbers(
    device: str, shape: tuple[int, ...], width: int, pads: tuple[int, ...], outputs: int
) -> None:
    """And the same bits in each run, where tiles overlap."""
    proto, feed = convolution(shape, width, pads), image(*shape)
    with opened(proto, device) as session:
        assert notes(session) == [by_winograd(outputs)]
        found = session.run(None, feed)
        assert_near(found, proto, feed)
        for _ in range(3):
            np.testing.assert_array_equal(session.run(None, feed)[0], found[0])


@pytest.mark.parametrize("device", DEVICES)
def test_bias_residual_and_activation_are_applied_before_results_are_stored(device: str) -> None:
    """Also where results are a part of a Concat, whose border the next one reads."""
    proto, feed = block(48, 15, 14), image(1, 48, 15, 14)
    with opened(proto, device) as session:
        assert notes(session) == [by_winograd(4, 3)]
        assert_near(session.run(None, feed), proto, feed)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "attributes",
    [{"strides": [2, 2]}, {"dilations": [2, 2], "pads": (2, 2, 2, 2)}, {"pads": (0, 0, 0, 0)}],
    ids=["strides", "dilations", "one-row-of-results"],
)
def test_other_convolutions_are_computed_directly(device: str, attributes: dict[str, Any]) -> None:
    shape = (1, 64, 3 if attributes.get("pads") == (0, 0, 0, 0) else 20, 20)
    proto, feed = convolution(shape, 64, **attributes), image(*shape)
    with opened(proto, device) as session:
        assert notes(session) == []
        assert_near(session.run(None, feed), proto, feed)


@pytest.mark.parametrize("device", DEVICES)
def test_its_products_are_tuned_like_others(device: str, tmp_path: Path) -> None:
    """What was measured for them is in the cache, and another tile gives the same numbers."""
    proto, feed = convolution((1, 40, 15, 21), 56), image(1, 40, 15, 21)
    with opened(proto, device, tuning="fast", tuning_cache=str(tmp_path)) as session:
        assert notes(session) == [by_winograd(4)]
        assert_near(session.run(None, feed), proto, feed)
    (kept,) = tmp_path.iterdir()
    assert [row["taps"] for row in json.loads(kept.read_text())["tuned"]] == [[36, 1]]


@pytest.mark.parametrize("device", DEVICES)
def test_it_can_be_turned_off(device: str) -> None:
    proto, feed = convolution((1, 32, 16, 16), 32), image(1, 32, 16, 16)
    with opened(proto, device, winograd="false") as session:
        assert notes(session) == []
        assert_near(session.run(None, feed), proto, feed)
    with pytest.raises(InvalidArgument, match="expected true or false"):
        opened(proto, device, winograd="maybe")


@pytest.mark.parametrize("device", ABLE)
def test_halves_stay_small(device: str) -> None:
    """`precision=fp16` is for weights of half the size."""
    with opened(convolution((1, 32, 16, 16), 32), device, precision="fp16") as session:
        assert notes(session) == []


@pytest.mark.parametrize("device", DEVICES)
def test_free_sizes_are_chosen_for_one_by_one_and_known_after_a_reload(
    device: str, tmp_path: Path
) -> None:
    proto, path = convolution((1, 32, "rows", 16), 32), tmp_path / "context.onnx"
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(path))
    given = {"device": device, "reshape_input": "x[1,32,24,16]"}
    with ort.InferenceSession(proto.SerializeToString(), config, [(OPENCL, given)]) as session:
        kept = session.run(None, image(1, 32, 24, 16))
        small = image(1, 32, 1, 16)
        assert_near(session.run(None, small), proto, small)
        assert by_winograd(4) not in notes(session)
    with opened(path, device) as session:
        assert by_winograd(4) in notes(session)
        np.testing.assert_array_equal(session.run(None, image(1, 32, 24, 16))[0], kept[0])
    assert_near(kept, proto, image(1, 32, 24, 16))
