"""pytest in a row's child: `python -m ort_lite.hw.child_pytest ARGUMENTS`, gone with its parent."""

from __future__ import annotations

import sys

import pytest

from ort_lite.hw.child_task import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    sys.exit(pytest.main(sys.argv[1:]))
