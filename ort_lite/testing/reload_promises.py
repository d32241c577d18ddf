"""Promises about whole context models: written, reloaded, and refused when damaged."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ctx_formats.notes import read_notes
from ort_lite.check import check_compatibility
from ort_lite.context import reload
from ort_lite.status import InvalidGraph
from ort_lite.status import NotImplemented as NotImplementedByAny
from ort_lite.testing.context_file import ContextFile, Damage, damages
from ort_lite.testing.context_promises import FOREIGN
from ort_lite.testing.oracle_cases import OracleCase, oracle_case
from ort_lite.testing.subject import EpUnderTest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ctx_formats.ep_context import EpContextNode
    from ort_lite.context.payload_checks import CheckedNode
    from ort_lite.ep.interface import (
        CompiledPartition,
        ExecutionProvider,
        PartitionIo,
        SupportsEpContext,
    )

EMBED = pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])


class ReloadPromises(EpUnderTest):
    """Promises to users of the EP's context models."""

    def write_context(self, folder: Path, case: OracleCase, *, embed: bool) -> ContextFile:
        """The context model of a case, compiled into `folder`."""
        folder.mkdir(exist_ok=True)
        source = folder / "m.onnx"
        source.write_bytes(case.encode())
        entries = {"ep.context_enable": "1", "ep.context_embed_mode": str(int(embed))}
        self.session(source, entries).close()
        source.unlink()
        payload = folder / f"m_{self.factory.name}.bin"
        made = ContextFile(folder / "m_ctx.onnx", None if embed else payload)
        assert len(made.nodes()) == 1, f"{self.factory.name} compiles {case.name} in one piece"
        return made

    def refusal(self, made: ContextFile) -> InvalidGraph:
        """The error on which a session and a check without a session agree."""
        with pytest.raises(InvalidGraph) as refusal:
            self.session(made.path)
        assert refusal.value.hint
        providers = [(self.factory.name, self.provider_options)]
        (verdict,) = check_compatibility(made.path, providers=providers)
        assert verdict.reason == refusal.value.reason
        return refusal.value

    @EMBED
    @pytest.mark.usefixtures("context_ep")
    def test_a_context_model_gives_the_same_numbers_bit_for_bit(
        self, taken: OracleCase, tmp_path: Path, *, embed: bool
    ) -> None:
        """Reloaded without the source model, without a compile, with digests required."""
        with self.session(taken.encode()) as session:
            expected = [session.run(None, dict(feed)) for feed in taken.feeds]
        made = self.write_context(tmp_path, taken, embed=embed)
        entries = {"session.disable_model_compile": "1", "session.require_payload_digest": "1"}
        with self.session(made.path, entries) as session:
            (part,) = session.explain().partitions
            assert (part.ep, part.origin) == (self.factory.name, "context")
            for feed, right in zip(taken.feeds, expected, strict=True):
                for mine, theirs in zip(session.run(None, dict(feed)), right, strict=True):
                    np.testing.assert_array_equal(mine, theirs)

    @EMBED
    @pytest.mark.usefixtures("context_ep")
    def test_a_context_model_moves_to_another_folder(
        self, taken: OracleCase, tmp_path: Path, *, embed: bool
    ) -> None:
        """No path in it is absolute."""
        self.write_context(tmp_path / "here", taken, embed=embed)
        (tmp_path / "here").rename(tmp_path / "there")
        with self.session(tmp_path / "there" / "m_ctx.onnx") as session:
            feed = taken.feeds[0]
            self.assert_close(session.run(None, dict(feed)), taken.expected_outputs(feed))

    @EMBED
    @pytest.mark.parametrize("damage", damages(), ids=lambda damage: damage.name)
    @pytest.mark.usefixtures("context_ep")
    def test_a_damaged_payload_is_refused(
        self, taken: OracleCase, tmp_path: Path, damage: Damage, *, embed: bool
    ) -> None:
        """Before the vendor's SDK sees a byte of it."""
        made = self.write_context(tmp_path, taken, embed=embed)
        made.put_container(damage.change(made.container()))
        assert str(self.refusal(made).reason) in damage.reasons

    @EMBED
    @pytest.mark.usefixtures("context_ep")
    def test_a_swapped_payload_is_refused(
        self, taken: OracleCase, tmp_path: Path, *, embed: bool
    ) -> None:
        """The whole, undamaged payload of the same graph with other weights."""
        if not taken.has_weights:
            pytest.skip(f"{self.factory.name} accepts no graph with weights")
        mine = self.write_context(tmp_path / "a", taken, embed=embed)
        other = self.write_context(tmp_path / "b", oracle_case(taken.name, seed=1), embed=embed)
        mine.put_container(other.container())
        assert self.refusal(mine).reason in ("integrity", "missing_payload")

    @EMBED
    @pytest.mark.parametrize("when", ["before the import", "after the import"])
    @pytest.mark.usefixtures("context_ep")
    def test_a_context_that_is_changed_in_place_afterwards_runs_as_it_was(
        self,
        taken: OracleCase,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        when: str,
        *,
        embed: bool,
    ) -> None:
        """The EP receives the bytes that passed the digest, even if the file changes."""
        made = self.write_context(tmp_path, taken, embed=embed)
        changed = made.path if made.payload is None else made.payload
        if when == "before the import":
            before_import(monkeypatch, lambda: flip_in_place(changed))
        with self.session(made.path) as session:
            feed = taken.feeds[0]
            right = taken.expected_outputs(feed)
            if when == "after the import":
                flip_in_place(changed)
            self.assert_close(session.run(None, dict(feed)), right)
            os.truncate(changed, 0)
            self.assert_close(session.run(None, dict(feed)), right)

    @pytest.mark.usefixtures("context_ep")
    def test_a_missing_payload_is_refused(self, taken: OracleCase, tmp_path: Path) -> None:
        """The message names the file."""
        made = self.write_context(tmp_path, taken, embed=False)
        assert made.payload is not None
        made.payload.unlink()
        error = self.refusal(made)
        assert error.reason == "missing_payload"
        assert made.payload.name in str(error)

    @EMBED
    @pytest.mark.usefixtures("context_ep")
    def test_a_context_of_another_sdk_is_refused(
        self, ep: ExecutionProvider, taken: OracleCase, tmp_path: Path, *, embed: bool
    ) -> None:
        """With the recorded and the present version in the error."""
        if not ep.identity.sdk_version:
            pytest.skip(f"{ep.name} reports no sdk_version")
        made = self.write_context(tmp_path, taken, embed=embed)
        made.edit(lambda node: replace(node, ep_sdk_version=FOREIGN))
        error = self.refusal(made)
        assert error.reason == "sdk_version"
        assert error.recorded is not None
        assert error.recorded.sdk_version == FOREIGN
        assert error.present == ep.identity

    @EMBED
    @pytest.mark.usefixtures("context_ep")
    def test_a_context_of_another_chip_is_refused(
        self, ep: ExecutionProvider, taken: OracleCase, tmp_path: Path, *, embed: bool
    ) -> None:
        """With the recorded and the present architecture in the error."""
        if not ep.identity.architecture:
            pytest.skip(f"{ep.name} reports no architecture")
        made = self.write_context(tmp_path, taken, embed=embed)
        made.edit(lambda node: replace(node, hardware_architecture=FOREIGN))
        error = self.refusal(made)
        assert error.reason == "hardware_architecture"
        assert error.recorded is not None
        assert error.recorded.architecture == FOREIGN
        assert error.present == ep.identity

    @EMBED
    @pytest.mark.usefixtures("context_ep")
    def test_a_context_of_another_driver_is_refused(
        self, ep: ExecutionProvider, taken: OracleCase, tmp_path: Path, *, embed: bool
    ) -> None:
        """As it is written where that driver is: notes and seal fit each other."""
        if not ep.identity.driver_version:
            pytest.skip(f"{ep.name} reports no driver_version")
        made = self.write_context(tmp_path, taken, embed=embed)
        made.edit(of_another_driver)
        error = self.refusal(made)
        assert error.reason == "driver_version"
        assert error.recorded is not None
        assert error.recorded.driver_version == FOREIGN
        assert error.present == ep.identity

    @pytest.mark.usefixtures("context_ep")
    def test_a_context_of_another_source_is_not_taken(
        self, taken: OracleCase, tmp_path: Path
    ) -> None:
        """Each EP takes the nodes that carry its own name."""
        made = self.write_context(tmp_path, taken, embed=False)
        made.edit(lambda node: replace(node, source="SomebodyElse"))
        with pytest.raises(NotImplementedByAny, match="generated by 'SomebodyElse'"):
            self.session(made.path)

    @pytest.mark.usefixtures("context_ep")
    def test_two_compilations_give_partitions_of_one_name(
        self, taken: OracleCase, tmp_path: Path
    ) -> None:
        """Names come from content, so that payloads can be found again."""
        first, second = (self.write_context(tmp_path / x, taken, embed=False) for x in "ab")
        (mine,), (other,) = first.nodes(), second.nodes()
        assert mine.partition_name == other.partition_name
        assert mine.source == self.factory.name


def before_import(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Let something happen once every digest has passed, before an EP gets a payload."""
    call_import = reload._call_import  # noqa: SLF001 - between two steps of ours

    def later(
        node: EpContextNode, checked: CheckedNode, ep: SupportsEpContext, io: PartitionIo
    ) -> CompiledPartition:
        action()
        return call_import(node, checked, ep, io)

    monkeypatch.setattr(reload, "_call_import", later)


def flip_in_place(path: Path) -> None:
    """Write other bytes into a file, of which a map would see every one."""
    data = bytes(byte ^ 0xFF for byte in path.read_bytes())
    with path.open("r+b") as file:
        file.write(data)


def of_another_driver(node: EpContextNode) -> EpContextNode:
    """The node as a machine with another driver writes it."""
    notes = read_notes(node)
    assert notes is not None, "the core writes them"
    identity = replace(notes.identity, driver_version=FOREIGN)
    return replace(notes, identity=identity).seal_into(node)
