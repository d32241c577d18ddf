"""ModelPackage: a model package on this machine, and the variant that fits it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.package_manifest import ASSETS_FOLDER
from ctx_formats.package_reader import read_package
from ort_lite.options import SessionOptions
from ort_lite.packages.package_files import ARCHIVE_ENDINGS, is_archive, is_url
from ort_lite.packages.variant_verdict import SCORES, VariantJudge, VariantVerdict
from ort_lite.providers.provider_list import choose_requests, read_requests
from ort_lite.status import Fail, InvalidArgument, InvalidGraph, NoSuchFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.package_manifest import PackageComponent, PackageVariant
    from ctx_formats.package_reader import PackageFolder
    from ort_lite.model.info import ModelMetadata
    from ort_lite.packages.package_copy import PackageCopy
    from ort_lite.providers.provider_list import ProviderRequest

COMPONENT_KEY = "session.package_component"
NO_VARIANT = "No suitable model variant found for the configured execution providers."


class NoSuitableVariant(Fail):
    """FAIL: no variant of a package may run here, with ONNX Runtime's text.

    Attributes:
        selection: Every variant with its reason.
    """

    def __init__(self, selection: PackageSelection, hint: str) -> None:
        """Build the message from the selection's reasons and `hint`."""
        reasons = "; ".join(map(str, selection.verdicts)) or "the component has no variants"
        super().__init__(f"{NO_VARIANT} {selection.package}: {reasons}. To fix this: {hint}.")
        self.selection = selection


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSelection:
    """The variant that a session would load, and why it would not load the others.

    Attributes:
        package: Path of the package.
        component: Name of the component.
        verdicts: On every variant, in the order of the manifest.
        chosen: The one to load; None if absent.
    """

    package: str
    component: str
    verdicts: tuple[VariantVerdict, ...]
    chosen: VariantVerdict | None

    def to_json(self) -> dict[str, Any]:
        """Plain dicts and lists."""
        return {
            "package": self.package,
            "component": self.component,
            "chosen": self.chosen.variant if self.chosen is not None else None,
            "variants": [verdict.to_json() for verdict in self.verdicts],
        }

    def lines(self) -> tuple[str, ...]:
        """The chosen variant, then the reason against each other one."""
        name = self.chosen.variant if self.chosen is not None else "no variant"
        others = [
            f"not {v}; {name} is preferred" if v.is_valid else f"not {v}"
            for v in self.verdicts
            if v is not self.chosen
        ]
        return (f"package {self.package}, component {self.component}: {name}", *others)

    def __str__(self) -> str:
        """A few lines for a person."""
        return "\n".join(self.lines())


class ModelPackage:
    """A model package; `InferenceSession(package)` loads the variant that fits this machine.

    The package's folder is only read. The manifest is read once, when this object is created. Of
    a package in an archive or behind a URL, the files of a variant are copied into the cache folder
    when the variant is judged or loaded.

    Attributes:
        source: The folder, archive or URL as it was named.
        path: The folder, or that of the copy.
        folder: The package as it was read.
        component: The component that sessions load.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        component: str = "",
        *,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Read the package's manifest.

        Args:
            path: The package's folder, a zip or tar archive of it, or a URL that fsspec opens.
            component: Name of the component; "" for the only one.
            config: Session entries that name the cache folder for copies.

        Raises:
            NoSuchFile: There is no such folder, or no manifest in it.
            InvalidGraph: It is not a package, with the reason.
            InvalidArgument: There is no such component, or several and none is named.
            Fail: The URL or archive cannot be opened or copied.
        """
        self.source = os.fspath(path)
        self.folder, self._copy = open_package_at(self.source, config or {})
        self.path = self.folder.root if self._copy is not None else self.source
        self.component: PackageComponent = _choose_component(self.folder, component)

    def __fspath__(self) -> str:
        """The folder."""
        return self.path

    def __repr__(self) -> str:
        """Show the folder and the number of variants."""
        return f"<ModelPackage {self.source} {len(self.component.variants)} variants>"

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the component's variants, in the order of the manifest."""
        return tuple(variant.name for variant in self.component.variants)

    def select(
        self,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> PackageSelection:
        """Judge all variants, and choose the one that a session of these arguments would load.

        The first of the session's execution providers with a valid variant decides; among its
        variants an optimal one wins over a suboptimal one, and that over a model that is not
        compiled; then the manifest's order decides.

        Raises:
            OrtLiteError: The arguments are wrong. Whatever is wrong with a variant is its reason.
        """
        options = (sess_options or SessionOptions()).snapshot()
        named = read_requests(providers, provider_options)
        return self.select_for(options, choose_requests(options, named, self._no_metadata))

    def select_for(
        self, options: SessionOptions, requests: Sequence[ProviderRequest]
    ) -> PackageSelection:
        """As `select`, for the providers that `choose_requests` returns."""
        judge = VariantJudge(options, requests, self._fetch if self._copy is not None else None)
        verdicts = tuple(judge.judge(variant) for variant in self.component.variants)
        order = [request.name for request in requests]
        valid = [verdict for verdict in verdicts if verdict.is_valid]
        chosen = min(
            valid, key=lambda one: (order.index(one.ep), -SCORES[one.verdict]), default=None
        )
        return PackageSelection(
            package=self.source, component=self.component.name, verdicts=verdicts, chosen=chosen
        )

    def fetch_variant(self, name: str) -> None:
        """Copy the files of a variant here, if the package is an archive or behind a URL.

        Raises:
            Fail: They cannot be copied.
        """
        for variant in self.component.variants:
            if variant.name == name:
                self._fetch(variant)

    def _fetch(self, variant: PackageVariant) -> None:
        if self._copy is None:
            return
        if not variant.folder:  # its files are among those of other variants
            self._copy.fetch_all()
            return
        named = (variant.folder, variant.model_path, *variant.session_options.values())
        inside = os.path.join(self.folder.root, "")  # noqa: PTH118 - a path of the reader
        places = set()
        for path in named:
            if path.startswith(inside):
                parts = Path(path[len(inside) :]).parts
                places.add("/".join(parts[:2] if parts[0] == ASSETS_FOLDER else parts))
        self._copy.fetch(places)

    def _no_metadata(self) -> ModelMetadata:
        raise InvalidArgument(
            "a delegate selects devices by the metadata of one model, and a package has several: "
            "name providers, or set a policy"
        )


def open_package_at(
    source: str, config: Mapping[str, str], *, whole: bool = False
) -> tuple[PackageFolder, PackageCopy | None]:
    """The package in a folder, in an archive or behind a URL, and its copy if it is not a folder.

    Args:
        source: Folder, archive or URL.
        config: Session entries that name the cache folder for copies.
        whole: Whether all files of a copy are needed.

    Raises:
        OrtLiteError: As ModelPackage.
    """
    if not is_url(source) and not (is_archive(source) and Path(source).is_file()):
        return open_package(source), None
    from ort_lite.packages.package_copy import open_copy  # noqa: PLC0415 - lazy: rare

    copy = open_copy(source, config, os.environ)
    if whole:
        copy.fetch_all()
    try:
        return open_package(str(copy.folder)), copy
    except (NoSuchFile, InvalidGraph):  # a large file may describe a component
        if whole:
            raise
    return open_package_at(source, config, whole=True)


def open_package(path: str) -> PackageFolder:
    """The package in a folder.

    Raises:
        NoSuchFile: There is no folder, or no manifest in it.
        InvalidGraph: It is not a package, with the reason.
    """
    try:
        return read_package(path)
    except FormatError as exc:
        missing = exc.reason is Reason.MISSING_PAYLOAD and exc.field in ("package", "manifest.json")
        if missing:
            raise NoSuchFile(
                f"Load model package from {path} failed: {exc}; ort-lite package build makes a "
                "package of a model"
            ) from exc
        hint = "get the package again, or build it with ort-lite package build"
        if os.path.isfile(path):  # noqa: PTH113 - a path that is not valid is no file
            endings = ", ".join(ARCHIVE_ENDINGS)
            hint = (
                f"a package is a folder, or an archive ({endings}); ort-lite inspect shows models"
            )
        raise InvalidGraph(
            f"{path} is not a valid model package: {exc} (reason: {exc.reason})",
            reason=exc.reason,
            hint=hint,
        ) from exc


def _choose_component(folder: PackageFolder, name: str) -> PackageComponent:
    components = folder.manifest.components
    names = ", ".join(one.name for one in components) or "none"
    if not name and len(components) == 1:
        return components[0]
    component = folder.manifest.component(name) if name else None
    if component is None:
        problem = f"has no component '{name}'" if name else f"has {len(components)} components"
        raise InvalidArgument(
            f"the package {folder.root} {problem}; choose one of {names} with --component, in "
            f"{COMPONENT_KEY} or as ModelPackage's component"
        )
    return component
