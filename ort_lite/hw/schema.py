"""The schema of hw_matrix.yaml as closed types: an unknown key is an error."""

from __future__ import annotations

from datetime import date  # noqa: TC003 - msgspec reads the annotations
from typing import Literal

import msgspec

Kind = Literal["CPU", "GPU", "NPU", "ACCELERATOR"]
Verdict = Literal[
    "optimal",
    "recompile_advised",
    "invalid_graph",
    "not_implemented",
    "wrong_numbers",
    "crashed",
    "error",
]


Ratio = Literal["run", "reload", "payload"]


class Closed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with these keys and no others."""


class Tolerance(Closed, frozen=True):
    """How far an output may be from the oracle: `share` of its largest value, plus `floor`."""

    share: float = 1e-4
    floor: float = 2e-6


class Defaults(Closed, frozen=True):
    """Defaults of every row.

    Attributes:
        install: Arguments of `pip install --no-deps` that bring ort_lite itself, run at the
            file's folder, such as ["-e", "."].
        packages: Requirements of every environment.
        setup: Shell commands of every CI job before its machine's, such as those that install
            ort-lite.
        timeout_s: Seconds for one suite of one row.
        load_timeout_s: Seconds for building or loading one context.
    """

    install: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    tolerance: Tolerance = Tolerance()
    timeout_s: float = 900
    load_timeout_s: float = 120


class Provider(Closed, frozen=True):
    """An execution provider on a kind of device.

    Attributes:
        sdk_modules: Packages of the vendor's SDK, which importing the EP must not import.
    """

    ep: str
    device: Kind
    options: dict[str, str] = {}
    sdk_modules: tuple[str, ...] = ()


class Require(Closed, frozen=True):
    """Properties that a machine needs to run a row; every field that is set is checked.

    Attributes:
        os: As platform.system() spells it, in lower case: linux, windows, darwin.
        machine: As platform.machine(): x86_64, aarch64.
        isa: CPU flags as Linux spells them: avx2, avx512f, amx_tile.
        pci: Any one of these chips is there, as "vendor:device" in hexadecimal.
        libraries: Shared libraries that the dynamic loader must find.
        vendor: Part of the device's vendor, as its driver spells it.
        architecture: Part of the device's architecture, such as "4000" for an NPU.
        driver: Range of driver versions, such as ">=32.0.100,<33".
        sdk: Range of SDK versions.
    """

    os: str = ""
    machine: str = ""
    isa: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    vendor: str = ""
    architecture: str = ""
    driver: str = ""
    sdk: str = ""


class MachineEntry(Closed, frozen=True):
    """A type of machine, not one instance.

    Attributes:
        runs_on: Labels of GitHub's or GitLab's runners and of Azure's demands.
        agents: Tags of Buildkite's agents.
        setup: Shell commands that a fresh machine of this type needs first.
        resources: What a Dask worker must carry, such as {"NPU": 1}.
    """

    about: str = ""
    runs_on: tuple[str, ...] = ()
    agents: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    resources: dict[str, float] = {}
    require: Require = Require()


class Limit(Closed, frozen=True):
    """The largest ratio that a platform promises in place of the suite's, and why another."""

    at_most: float
    why: str


class AxisValue(Closed, frozen=True):
    """The effect of an axis value on a row.

    Attributes:
        python: Version of the interpreter, "3.12"; "" for the one that runs this.
        env: Environment variables of the row's processes; {env} is the environment's folder.
        options: Provider options.
        config: Session configuration entries.
        limits: Thresholds of `bench` that this platform has instead of the suite's.
    """

    about: str = ""
    python: str = ""
    packages: tuple[str, ...] = ()
    env: dict[str, str] = {}
    options: dict[str, str] = {}
    config: dict[str, str] = {}
    limits: dict[Ratio, Limit] = {}
    require: Require = Require()


class Row(Closed, frozen=True):
    """One line of the matrix; one expanded row for each combination of its axes' values.

    Attributes:
        limits: Thresholds of `bench` that this row has instead of the suite's; an axis's win.
    """

    id: str
    provider: str
    machine: str
    about: str = ""
    lane: str = ""
    axes: dict[str, tuple[str, ...]] = {}
    suites: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    env: dict[str, str] = {}
    limits: dict[Ratio, Limit] = {}
    require: Require = Require()
    allow_failure: bool = False


class Combination(Closed, frozen=True):
    """A combination of axis values that a row gains or loses."""

    row: str
    axes: dict[str, str]
    reason: str = ""


class InputSpec(Closed, frozen=True):
    """How to make one input: normal numbers unless `below` or `constant` says otherwise."""

    shape: tuple[int, ...]
    below: int | None = None
    constant: float | None = None


class MatrixModel(Closed, frozen=True):
    """A model file, relative to the matrix file.

    Attributes:
        fetch: Command that brings the file where it is missing; {python} is the interpreter.
        inputs: Specifications by input name, or the path of a .npz file.
        oracle: "onnxruntime", "cpu" (ours), or a .npz file of expected outputs.
        tolerance: In place of the defaults'.
    """

    path: str
    fetch: tuple[str, ...] = ()
    inputs: dict[str, InputSpec] | str = {}
    oracle: str = "onnxruntime"
    tolerance: Tolerance | None = None


class ConformanceSuite(Closed, frozen=True, tag_field="kind", tag="conformance"):
    """The promises of ort_lite.testing, with pytest."""

    timeout_s: float | None = None


class ModelsSuite(Closed, frozen=True, tag_field="kind", tag="models"):
    """Models against their oracle, fresh and reloaded from their context."""

    models: tuple[str, ...]
    timeout_s: float | None = None


class BenchSuite(Closed, frozen=True, tag_field="kind", tag="bench"):
    """Times as ratios.

    Attributes:
        against: The peer of `run`, alternating with ours in one process.
        thresholds: Largest allowed ratio by name: `run` (ours over the peer's), `reload`
            (session from context over session from model), `payload` (context over model).
    """

    models: tuple[str, ...]
    runs: int = 20
    against: Literal["onnxruntime", "cpu"] = "onnxruntime"
    thresholds: dict[Ratio, float] = {}
    timeout_s: float | None = None


Suite = ConformanceSuite | ModelsSuite | BenchSuite


class CrossExpectation(
    Closed, frozen=True, kw_only=True, rename={"builder": "from", "loader": "to"}
):
    """The expected result of loading contexts of rows on other rows; `*` matches any text.

    Attributes:
        reasons: Those an INVALID_GRAPH may give; any of the closed list if empty.
        why: One line for a person.
    """

    builder: str
    loader: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    why: str


class CrossLoad(Closed, frozen=True):
    """Which rows load which rows' contexts; the first expectation that fits a pair holds.

    Attributes:
        rows: Names of rows that take part; `*` is any text.
    """

    models: tuple[str, ...] = ()
    rows: tuple[str, ...] = ("*",)
    expect: tuple[CrossExpectation, ...] = ()


class Expectation(Closed, frozen=True):
    """A known failure: an unexpected pass fails, and so does one that is out of date.

    Attributes:
        row: Names of rows; `*` is any text.
        test: Suite and case, as in "conformance::test_x[case]"; `*` is any text.
        until: After this day the failure counts again.
    """

    row: str
    test: str
    reason: str
    until: date
    issue: str = ""


class Artifacts(Closed, frozen=True):
    """The files of a row that are stored.

    Attributes:
        produce: Patterns of files in the row's folder.
        keep_days: For the CI's store.
    """

    produce: tuple[str, ...] = ("result.json", "junit.xml", "log.txt", "contexts/*")
    keep_days: int = 14


class Evidence(Closed, frozen=True):
    """A real run, written by `ort-lite hw record`.

    Attributes:
        row_digest: Of the row and of what its suites asked (ort_lite.hw.rows); another one
            needs another run.
        identity: Device, driver and SDK, as the EP reported them.
        packages: Distributions in the row's environment.
        suites: Name to counts, such as "84 passed, 1 expected failure".
    """

    date: date
    commit: str
    row_digest: str
    identity: dict[str, str]
    packages: dict[str, str]
    suites: dict[str, str]


class RowState(Closed, frozen=True):
    """How sure we are of one expanded row."""

    state: Literal["verified", "expected", "unsupported"]
    reason: str = ""
    evidence: Evidence | None = None


class Matrix(Closed, frozen=True, kw_only=True):
    """The content of hw_matrix.yaml."""

    schema: Literal[1]
    project: str
    defaults: Defaults = Defaults()
    providers: dict[str, Provider]
    machines: dict[str, MachineEntry]
    axes: dict[str, dict[str, AxisValue]] = {}
    rows: tuple[Row, ...]
    include: tuple[Combination, ...] = ()
    exclude: tuple[Combination, ...] = ()
    models: dict[str, MatrixModel] = {}
    suites: dict[str, Suite] = {}
    artifacts: Artifacts = Artifacts()
    cross_load: CrossLoad = CrossLoad()
    expectations: tuple[Expectation, ...] = ()
    states: dict[str, RowState]
