"""Whatever name onnxruntime's modules and classes have is here, or missing for a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in_names import MODULES
from stand_in_programs import python, stand_in

SCRIPT = Path(__file__).parents[2] / "stand_in_names.py"
MISSING = {
    "a module or a type that their file imports, or an annotation": {
        *("Any", "Callable", "IntEnum", "Sequence", "annotations", "collections", "contextlib"),
        *("linecache", "np", "ort", "os", "packaging", "platform", "typing", "warnings", "weakref"),
        *("helper", "version", "check_model", "ModelProto", "_ld_preload"),
        *("InferenceSession", "get_available_providers"),
        *("GetInitializerLocationFunc", "GetInitializerLocationWrapperFunc"),
    },
    "private to files about CUDA's libraries and plug-in, which are not here": {
        *("_extract_cuda_major_version", "_get_cuda_plugin_ep_library_path", "_get_cufft_version"),
        *("_get_nvidia_dll_paths", "_get_package_root", "_get_package_version"),
        *("_register_bundled_cuda_plugin_ep", "pack_fp4_weights_for_cuda_moe_gemm"),
    },
    "private to graph capture and buffers of WebGPU, which is not here": {
        *("_DEFAULT_WEBGPU_CONTEXT_ID", "_GPU_GRAPH_ID_RUN_CONFIG_KEY", "_GRAPH_ANNOTATION_SKIP"),
        *("_graph_annotation_id", "_has_foreign_webgpu_context", "_session_webgpu_context_id"),
        *("_is_ortvalue_session_compatible", "_validate_ortvalue_session_compatibility"),
    },
    "joins their Python to their C++, which is one thing here": {
        *("SessionObjectInitializer", "get_session_initializer", "opkernel", "schemadef"),
        "make_get_initializer_location_func_wrapper",
    },
    "of their own package for Windows: the release of Windows that a build is for": {
        "version_info"
    },
    "private lists of the backend, here without the underscore": {
        *("_ALLOWED_RUN_OPTIONS", "_ALLOWED_SESSION_OPTIONS"),
    },
    "packs weights in C++ for quantization of matrix products to few bits": {
        *("quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits"),
        *("quantize_matmul_bnb4", "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits"),
    },
}
"""By reason, names of modules. A name that is here by now may leave the list."""
MISSING_MEMBERS = {
    "pybind11's own": {"_pybind11_conduit_v1_", "__entries"},
    "an attribute of objects, as Python's enumerations and dataclasses have it": {
        *("name", "value", "arena_extend_strategy", "initial_chunk_size_bytes", "max_mem"),
        *("initial_growth_chunk_size_bytes", "max_dead_bytes_per_chunk"),
        "max_power_of_two_extend_bytes",
    },
    "found on a session, and not on its class": {"_reset_session", "_validate_input"},
    "private to how their session is made, or to graph capture of WebGPU": {
        *("_capture_signature", "_create_inference_session", "_register_ep_custom_ops"),
        *("_reject_if_pinned", "_release_captured_graphs", "_validate_capture_bindings"),
        *("_validate_graph_capture_run_api", "_validate_ortvalue_ownership"),
    },
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of onnxruntime, and of the stand-in."""
    theirs = python(SCRIPT).stdout
    path = tmp_path_factory.mktemp("names") / "onnxruntime.json"
    path.write_text(theirs, "utf-8")
    return json.loads(theirs), json.loads(stand_in(SCRIPT, path).stdout)


def accepts(here: list[str] | None, there: list[str] | None) -> bool:
    """Whether a call that fits `there` fits `here`; nobody knows what pybind11's take."""
    if there is None or here is None or {"*", "**"} <= {*there} or "*" in here:
        return True
    asked = [name for name in there if name != "**"]
    mine = [name for name in here if name != "**"]
    plain = [name.rstrip("!") for name in asked]
    if [name.rstrip("!") for name in mine[: len(plain)]] != plain[: len(mine)]:
        return False
    if len(mine) < len(asked):
        return "**" in here
    more_needed = [name for name in mine[len(asked) :] if name.endswith("!")]
    needed = [b for a, b in zip(asked, mine, strict=False) if b.endswith("!") and a != b]
    return not more_needed and not needed


@pytest.mark.parametrize("module", MODULES)
def test_no_name_of_a_module_is_missing_without_a_reason(
    names: tuple[dict[str, Any], dict[str, Any]], module: str
) -> None:
    theirs, ours = (side[module] for side in names)
    assert theirs.keys() - ours.keys() - set().union(*MISSING.values()) == set()


@pytest.mark.parametrize("module", MODULES)
def test_no_member_of_a_class_is_missing_without_a_reason(
    names: tuple[dict[str, Any], dict[str, Any]], module: str
) -> None:
    theirs, ours = (side[module] for side in names)
    missing = {
        f"{name}.{member}"
        for name, members in theirs.items()
        if isinstance(members, dict) and name in ours
        for member in members.keys() - (ours[name] or {}).keys()
        if member not in set().union(*MISSING_MEMBERS.values())
    }
    assert missing == set()


@pytest.mark.parametrize("module", MODULES)
def test_what_onnxruntime_s_functions_accept_is_accepted(
    names: tuple[dict[str, Any], dict[str, Any]], module: str
) -> None:
    theirs, ours = (side[module] for side in names)
    pairs = {name: (ours[name], theirs[name]) for name in theirs.keys() & ours.keys()}
    for name, (mine, their) in list(pairs.items()):
        if isinstance(mine, dict) and isinstance(their, dict):
            del pairs[name]
            for member in mine.keys() & their.keys():
                pairs[f"{name}.{member}"] = mine[member], their[member]
    wrong = {name: pair for name, pair in pairs.items() if not accepts(*pair)}
    assert wrong == {}


@pytest.mark.parametrize(
    ("here", "there", "fits"),
    [
        (["a!", "b"], ["a!", "b"], True),
        (["a!", "b", "c"], ["a!", "b"], True),
        (["a!", "b", "c!"], ["a!", "b"], False),
        (["a!", "b!"], ["a!", "b"], False),
        (["a!", "x"], ["a!", "b"], False),
        (["a!", "**"], ["a!", "b"], True),
        (["a!"], ["a!", "b"], False),
        (["a!"], ["*", "**"], True),
    ],
)
def test_the_comparison_of_signatures_sees_what_a_call_would(
    here: list[str], there: list[str], *, fits: bool
) -> None:
    assert accepts(here, there) is fits
