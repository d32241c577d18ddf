"""Odd values for every setting of sessions, providers and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attacks.attack import Engine, WrongAnswerError, add, must_fail
from attacks.on_models import X, Y, model

if TYPE_CHECKING:
    from collections.abc import Callable


def refused(name: str, call: Callable[[Engine], object]) -> None:
    """A call that must fail."""
    add(f"options: {name}", lambda engine: must_fail(lambda: call(engine)))


def harmless(name: str, prepare: Callable[[Engine, Any], object]) -> None:
    """Options that may be refused, and must not change the answer."""

    def run(engine: Engine) -> None:
        options = engine.options()
        prepare(engine, options)
        engine.check(model(), {"x": X}, Y, options)

    add(f"options: {name}", run)


ODD: dict[str, Any] = {
    "None": None,
    "an object": object(),
    "a float": 1.5,
    "minus one": -1,
    "2^40": 2**40,
    "text": "yes",
    "a list": [],
    "bytes": b"1",
    "NaN": float("nan"),
}
ATTRIBUTES = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "enable_mem_reuse",
    "enable_profiling",
    "execution_mode",
    "execution_order",
    "graph_optimization_level",
    "inter_op_num_threads",
    "intra_op_num_threads",
    "log_severity_level",
    "log_verbosity_level",
    "logid",
    "optimized_model_filepath",
    "profile_file_prefix",
    "use_deterministic_compute",
)
for _attribute in ATTRIBUTES:
    for _label, _value in ODD.items():
        if (_attribute, _label) in (("logid", "text"), ("profile_file_prefix", "text")):
            continue
        if _attribute == "optimized_model_filepath":
            continue  # a file of that name would be written
        if _attribute == "enable_profiling":
            continue  # as above

        def _prepare(_: Engine, options: Any, name: str = _attribute, value: Any = _value) -> None:
            setattr(options, name, value)

        harmless(f"{_attribute} is {_label}", _prepare)

KEYS = (
    "ep.context_enable",
    "ep.context_embed_mode",
    "ep.context_file_path",
    "ep.share_ep_contexts",
    "session.disable_cpu_ep_fallback",
    "session.disable_model_compile",
    "session.ep_compile_after_runs",
    "session.ep_compile_in_background",
    "session.ep_context_probe",
    "session.model_cache",
    "session.require_payload_digest",
    "session.intra_op.allow_spinning",
    "session.use_device_allocator_for_initializers",
    "session.set_denormal_as_zero",
    "optimization.disable_specified_optimizers",
    "session.record_ep_graph_assignment_info",
    "optimization.constant_folding_max_output_size_in_bytes",
    "session.model_external_initializers_file_folder_path",
    "session.fail_on_suboptimal_compiled_model",
)
VALUES = {
    "2": "2",
    "text": "sure",
    "empty": "",
    "a path": "/nosuch/../x",
    "Cyrillic": "\u0434\u0430",
    "newline": "1\n",
    "spaces": " 1 ",
    "minus": "-1",
    "huge": "9" * 400,
}
for _key in KEYS:
    for _label, _value in VALUES.items():
        if _key in ("ep.context_file_path", "session.model_cache") and _label != "a path":
            continue

        def _entry(_: Engine, options: Any, key: str = _key, value: Any = _value) -> None:
            options.add_session_config_entry(key, value)

        harmless(f"{_key} is {_label}", _entry)

refused("entry without a key", lambda e: e.options().add_session_config_entry("", "1"))
refused(
    "entry with a key of 2,000", lambda e: e.options().add_session_config_entry("k" * 2000, "1")
)
refused(
    "entry with a value of 9,000", lambda e: e.options().add_session_config_entry("k", "v" * 9000)
)
refused("entry that is not text", lambda e: e.options().add_session_config_entry("k", 1))
refused("entry of None", lambda e: e.options().add_session_config_entry("k", None))
harmless("entry nobody knows", lambda _, o: o.add_session_config_entry("no.such", "1"))
harmless(
    "entry with half a surrogate", lambda _, o: o.add_session_config_entry("no.such", "\ud800")
)
harmless("entry with a NUL", lambda _, o: o.add_session_config_entry("no.such", "a\0b"))
harmless(
    "free dimension that is not there", lambda _, o: o.add_free_dimension_override_by_name("q", 3)
)
harmless("free dimension of -5", lambda _, o: o.add_free_dimension_override_by_name("q", -5))
harmless("free dimension of 2^80", lambda _, o: o.add_free_dimension_override_by_name("q", 2**80))
harmless("free dimension of text", lambda _, o: o.add_free_dimension_override_by_name("q", "3"))
harmless(
    "initializer that is not there",
    lambda e, o: o.add_initializer("nosuch", e.ort.OrtValue.ortvalue_from_numpy(X.copy())),
)
harmless(
    "initializer of another shape",
    lambda e, o: o.add_initializer("b", e.ort.OrtValue.ortvalue_from_numpy(X.copy())),
)


def providers(name: str, given: Any, options: Any = None) -> None:
    """An argument `providers` that is refused, or does not change the answer."""

    def run(engine: Engine) -> None:
        session = engine.ort.InferenceSession(
            model().SerializeToString(), engine.options(), given, options, enable_fallback=0
        )
        engine.compare(session.run(None, {"x": X})[0], Y)

    add(f"options: providers {name}", run)


CPU = "CPUExecutionProvider"
providers("empty", [])
providers("a text", CPU)
providers("None in it", [None])
providers("a number", 5)
providers("unknown", ["NoSuchExecutionProvider"])
providers("empty name", [""])
providers("twice", [CPU, CPU])
providers("a pair of three", [(CPU, {}, 1)])
providers("a pair with None", [(CPU, None)])
providers("with an odd option", [(CPU, {"nosuch": "1"})])
providers("with options of another length", [CPU], [{}, {}])
providers("with options that are none", [CPU], ["x"])
providers("in both ways", [(CPU, {})], [{}])
providers("a name with a newline", [CPU + "\n"])
providers("a name in other letters", [CPU.lower()])
providers("a set", {CPU})
providers("10,000 times", [CPU] * 10_000)

for _option in (
    "device_type",
    "num_of_threads",
    "precision",
    "cache_dir",
    "device_id",
    "platform",
    "tuning",
    "performance_hint",
    "load_config",
    "reshape_input",
    "nosuch",
    "",
    "device",
    "num_streams",
):
    for _label, _value in {
        **VALUES,
        "number": 1,
        "None": None,
        "JSON": "{",
        "JSON list": "[]",
        "deep JSON": "[" * 20000,
    }.items():

        def _with(engine: Engine, option: str = _option, value: Any = _value) -> None:
            session = engine.ort.InferenceSession(
                model().SerializeToString(),
                engine.options(),
                providers=[(engine.provider, {option: value})],
                enable_fallback=0,
            )
            engine.compare(session.run(None, {"x": X})[0], Y)

        add(f"provider options: {_option or 'empty'} is {_label}", _with)


def model_argument(name: str, given: Any) -> None:
    refused(f"model {name}", lambda e: e.session(given))


for _label, _value in ODD.items():
    model_argument(f"is {_label}", _value)
model_argument("is an empty path", "")
model_argument("is a folder", "/")
model_argument("is missing", "/no/such/model.onnx")
model_argument("is a path with a NUL", "/tmp/a\0b")
model_argument("is a path of 10,000 letters", "/" + "a" * 10_000)
model_argument("is a path of 10,000 folders", "/" + "a/" * 10_000)
model_argument("is /dev/null", "/dev/null")
model_argument("is /dev/zero", "/dev/zero")
model_argument("is /proc/self/mem", "/proc/self/mem")
model_argument("is /proc/cpuinfo", "/proc/cpuinfo")
model_argument("is half a surrogate", "/tmp/\udcff\ud800")
refused(
    "options are a dict", lambda e: e.ort.InferenceSession(model().SerializeToString(), {}, [CPU])
)
refused(
    "options are RunOptions",
    lambda e: e.ort.InferenceSession(model().SerializeToString(), e.ort.RunOptions(), [CPU]),
)


def run_options(name: str, change: Callable[[Engine, Any], object], *, fails: bool = False) -> None:
    def run(engine: Engine) -> None:
        session, options = engine.session(model()), engine.ort.RunOptions()
        change(engine, options)
        found = session.run(None, {"x": X}, options)[0]
        if fails:
            raise WrongAnswerError("accepted")
        engine.compare(found, Y)

    add(f"run options: {name}", run)


for _attribute in (
    "log_severity_level",
    "log_verbosity_level",
    "logid",
    "only_execute_path_to_fetches",
    "terminate",
):
    for _label, _value in ODD.items():
        if _attribute in ("logid", "terminate"):
            continue

        def _set(_: Engine, options: Any, name: str = _attribute, value: Any = _value) -> None:
            setattr(options, name, value)

        run_options(f"{_attribute} is {_label}", _set)
run_options("terminated before", lambda _, o: setattr(o, "terminate", True), fails=True)
run_options("entry without a key", lambda _, o: o.add_run_config_entry("", "1"), fails=True)
run_options("entry nobody knows", lambda _, o: o.add_run_config_entry("no.such", "1"))
run_options("adapter of None", lambda _, o: o.add_active_adapter(None))
run_options("adapter that is none", lambda _, o: o.add_active_adapter("x"), fails=True)
refused(
    "run options of a dict", lambda e: e.session(model()).run(None, {"x": X}, {"terminate": True})
)
refused(
    "run options that are session options",
    lambda e: e.session(model()).run(None, {"x": X}, e.options()),
)
