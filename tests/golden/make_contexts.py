"""Makes the context models of this folder, with the OpenVINO that its Python has.

    python -m venv v && v/bin/pip install -e . openvino==2025.4.1
    v/bin/python tests/golden/make_contexts.py

writes `openvino_2025.4.1/`: a context model, its payload file, and `about.json` with the inputs,
the outputs that this OpenVINO gave, and where and when that was. Files that are there are not
replaced: a golden file shows what was once written, not what is written today.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from small_models import feed, mlp  # noqa: E402 - the path comes first

import ort_lite as ort  # noqa: E402 - as above

EP = "OpenVINOExecutionProvider"


def main() -> None:
    """Compile the model, and note what it computes."""
    (device,) = [d for d in ort.get_ep_devices() if d.ep_name == EP]
    folder = HERE / f"openvino_{device.ep_metadata['sdk_version']}"
    folder.mkdir()
    proto = mlp()
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(folder / "mlp_ctx.onnx"))
    with ort.InferenceSession(proto.SerializeToString(), options, providers=[EP]) as session:
        (output,) = session.run(None, feed(proto))
    about = {
        "made": dt.datetime.now(dt.UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "device": device.device.metadata["Description"],
        "inputs": {name: array.tolist() for name, array in feed(proto).items()},
        "outputs": {"y": output.tolist()},
    }
    text = json.dumps(about, indent=2)
    (folder / "about.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
