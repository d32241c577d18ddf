"""`OrtModelError`: a defect of a model in the ORT format, with ONNX Runtime's words for it."""

from __future__ import annotations

from ctx_formats.errors import FormatError


class OrtModelError(FormatError):
    """A model in the ORT format whose content is wrong, not only its FlatBuffer.

    Attributes:
        message: ONNX Runtime's text.
        is_argument: Whether ONNX Runtime reports INVALID_ARGUMENT rather than FAIL.
    """

    def __init__(
        self, field: str, actual: str, expected: str, message: str, *, is_argument: bool = False
    ) -> None:
        super().__init__(field, actual, expected)
        self.message = message
        self.is_argument = is_argument

    def in_file(self, file: str) -> OrtModelError:
        """The same error with the name of its file."""
        named = OrtModelError(
            self.field, self.found, self.expected, self.message, is_argument=self.is_argument
        )
        named.file = self.file or file
        return named
