"""`python -m ort_lite` is `ort-lite`."""

from ort_lite.cli import main

if __name__ == "__main__":
    main()
