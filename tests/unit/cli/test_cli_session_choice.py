"""Options of the command line become the session that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import numpy as np
import pytest

from ort_lite.cli.app import run_command
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import size_text, time_text
from ort_lite.cli.session_choice import SessionChoice, full_name, session_choice
from ort_lite.providers.device_policy import POLICY_NAMES, OrtExecutionProviderDevicePolicy

if TYPE_CHECKING:
    from pathlib import Path

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"


def chosen(*arguments: str) -> SessionChoice:
    """What a command with the session options is given."""
    given: list[SessionChoice] = []

    @click.command()
    @session_choice
    def command(*, choice: SessionChoice) -> ExitCode:
        given.append(choice)
        return ExitCode.OK

    command.main(list(arguments), standalone_mode=False)
    return given[0]


def test_nothing_chosen_leaves_everything_to_the_session() -> None:
    assert chosen() == SessionChoice()


@pytest.mark.parametrize("ep", ["openvino", "OpenVINO", "openvinoexecutionprovider", OPENVINO])
def test_a_provider_may_be_named_in_short(ep: str) -> None:
    assert full_name(ep) == OPENVINO


def test_a_name_that_nobody_has_is_passed_on_as_it_is() -> None:
    assert full_name("qnn") == "qnn"


def test_providers_keep_their_order_and_their_options() -> None:
    choice = chosen("-e", "openvino", "-e", "cpu", "-O", "openvino.device_type=AUTO:GPU,CPU",
                    "-O", "cpu.intra_op_num_threads=2")  # fmt: skip
    assert choice.providers == (
        (OPENVINO, {"device_type": "AUTO:GPU,CPU"}),
        (CPU, {"intra_op_num_threads": "2"}),
    )


def test_an_option_without_a_name_belongs_to_the_only_provider() -> None:
    choice = chosen("-e", "openvino", "-O", 'load_config={"a.b": 1}')
    assert choice.providers == ((OPENVINO, {"load_config": '{"a.b": 1}'}),)


def test_an_option_of_one_of_two_providers_must_say_whose() -> None:
    with pytest.raises(click.UsageError, match="which execution provider is it for"):
        chosen("-e", "openvino", "-e", "cpu", "-O", "device_type=CPU")


def test_entries_and_dimensions_reach_the_session_options() -> None:
    choice = chosen("-c", "session.disable_cpu_ep_fallback=1", "--dim", "batch=4")
    options = choice.session_options({"ep.context_enable": "1"})
    assert options.get_session_config_entry("session.disable_cpu_ep_fallback") == "1"
    assert options.get_session_config_entry("ep.context_enable") == "1"
    assert options.free_dimensions == {"batch": 4}


@pytest.mark.parametrize("policy", OrtExecutionProviderDevicePolicy)
def test_a_policy_is_the_session_s(policy: OrtExecutionProviderDevicePolicy) -> None:
    assert POLICY_NAMES[policy] == policy.name
    options = chosen("--policy", policy.name.lower()).session_options()
    assert options.selection_policy is policy


def test_a_fixed_dimension_is_fixed_in_the_session(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    arguments = ["run", str(model), "-e", "cpu", "--dim", "batch=6", "-o", str(out)]
    assert run_command(arguments) == 0
    assert np.load(out)["y"].shape == (6, 2)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_451_840, "12.5 MB"), (3e9, "3.00 GB"),
     (2e12, "2000.00 GB")],
)  # fmt: skip
def test_sizes_are_told_in_decimal_units(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.0011, "1.10 ms"), (2.5, "2.50 s")])
def test_times_are_told_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
