"""Archives of the model cache that nobody vouches for: refused, and nothing of theirs stays."""

from __future__ import annotations

import io
import random
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from cached_starts import only_entry, start, store
from small_models import sandwich
from system_limits import needs_posix

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from ort_lite.model_cache.transfer import export_entries, import_entries
from ort_lite.model_cache.verification import problems

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ort_lite.model_cache.entry import CacheEntry

QUOTA = 1_000_000
NAME = "objects/" + "a" * 64 + ".bin"

Member = tuple[str, bytes, dict[str, Any]]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with one entry, which tests do not change."""
    cache = tmp_path_factory.mktemp("filled") / "cache"
    assert start(sandwich().SerializeToString(), cache)[0] == "stored"
    return cache


@pytest.fixture(scope="module")
def archive(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Its export."""
    target = tmp_path_factory.mktemp("archive") / "seed.tar"
    export_entries(store(filled), store(filled).sound_entries(), target)
    return target.read_bytes()


@pytest.fixture
def take(tmp_path: Path) -> Callable[[bytes], list[CacheEntry]]:
    """Imports bytes into the cache at tmp_path / "cache"."""

    def taken(data: bytes) -> list[CacheEntry]:
        path = tmp_path / "seed.tar"
        path.write_bytes(data)
        return import_entries(store(tmp_path / "cache"), path, QUOTA)

    return taken


def files(cache: Path) -> list[str]:
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def tar(*members: Member, about: bytes = b'{"format": 1}') -> bytes:
    """An archive of these members after the one that has the format."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as written:
        for name, content, more in (("archive.json", about, {}), *members):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in more.items():
                setattr(member, key, value)
            written.addfile(member, io.BytesIO(content))
    return made.getvalue()


def sound(filled: Path) -> list[Member]:
    """The members of a whole archive."""
    kept, entry = store(filled), only_entry(filled)
    members: list[Member] = [
        (f"objects/{one.name}", (kept.objects / one.name).read_bytes(), {}) for one in entry.objects
    ]
    return [*members, (f"entries/{entry.key}.json", entry.to_bytes(), {})]


@pytest.mark.parametrize(
    "member",
    [
        ("../x", b"1", {}),
        ("/etc/x", b"1", {}),
        ("objects/../../x", b"1", {}),
        ("objects/..", b"1", {}),
        ("notes/x", b"1", {}),
        (NAME, b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        (NAME, b"", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
        (NAME, b"", {"type": tarfile.FIFOTYPE}),
        (NAME, b"", {"type": tarfile.CHRTYPE}),
        ("objects", b"", {"type": tarfile.DIRTYPE}),
        ("objects/" + "A" * 64 + ".bin", b"1", {}),
        ("objects/" + "\u0663" * 64 + ".bin", b"1", {}),
        (NAME, b"of another digest", {}),
        ("objects/" + "a" * 64 + ".onnx", b"of another digest", {}),
        ("entries/" + "a" * 64 + ".json", b"{}", {}),
        ("entries/" + "a" * 64 + ".json", b"[" * 100_000, {}),
    ],
)
def test_what_is_no_sound_object_or_entry_is_refused(
    take: Callable[[bytes], Any], tmp_path: Path, member: Member
) -> None:
    with pytest.raises(FormatError):
        take(tar(member))
    assert files(tmp_path / "cache") == []


def test_an_object_of_another_content_replaces_nothing(
    take: Callable[[bytes], Any], filled: Path, archive: bytes, tmp_path: Path
) -> None:
    take(archive)
    with pytest.raises(FormatError, match="4 bytes, expected"):
        take(tar((f"objects/{only_entry(filled).payloads[0].name}", b"evil", {})))
    assert list(problems(store(tmp_path / "cache"))) == []


def test_an_archive_that_was_cut_off_is_refused(
    take: Callable[[bytes], Any], archive: bytes, tmp_path: Path
) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        ends = [member.offset for member in opened]
        end = opened.offset
    cuts = [0, 1, 100, *ends[1:], *(at + 100 for at in ends), end, end + tarfile.BLOCKSIZE]
    for cut in cuts:
        with pytest.raises(FormatError):
            take(archive[:cut])
    # Cut behind the last member the entry is whole, and stays; cut before, nothing does.
    assert len(store(tmp_path / "cache").sound_entries()) == 1


def test_objects_without_their_entry_do_not_stay(
    take: Callable[[bytes], Any], filled: Path, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match="no entry names"):
        take(tar(*sound(filled)[:-1]))
    assert files(tmp_path / "cache") == []


def test_a_flipped_byte_in_a_header_is_never_taken_for_the_end(
    take: Callable[[bytes], list[CacheEntry]], archive: bytes, filled: Path
) -> None:
    chance = random.Random(7)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        headers = [member.offset for member in opened]
    for _ in range(300):
        damaged = bytearray(archive)
        at = chance.choice(headers) + chance.randrange(tarfile.BLOCKSIZE)
        damaged[at] ^= 1 << chance.randrange(8)
        try:
            taken = take(bytes(damaged))
        except FormatError:
            continue
        assert [entry.key for entry in taken] == [only_entry(filled).key]


@needs_posix
def test_a_sparse_file_is_refused_whatever_size_it_says(
    take: Callable[[bytes], Any], tmp_path: Path
) -> None:
    folder = tmp_path / "sparse"
    (folder / "objects").mkdir(parents=True)
    with (folder / NAME).open("wb") as file:
        file.truncate(QUOTA // 2)
    (folder / "archive.json").write_text('{"format": 1}', encoding="utf-8")
    target = str(tmp_path / "s.tar")
    command = ["tar", "-S", "-cf", target, "-C", str(folder), "archive.json", NAME]
    subprocess.run(command, check=True)
    data = (tmp_path / "s.tar").read_bytes()
    assert len(data) < QUOTA // 4
    with pytest.raises(FormatError, match="objects and entries only"):
        take(data)


@pytest.mark.parametrize("value", ["1", "x", "-1", "9" * 30])
@pytest.mark.parametrize("key", ["size", "path", "GNU.sparse.realsize", "GNU.sparse.map", "mtime"])
def test_a_hostile_pax_header_is_refused(
    take: Callable[[bytes], Any], tmp_path: Path, key: str, value: str
) -> None:
    made = io.BytesIO()
    sparse = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"} if "sparse" in key else {}
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as written:
        about = tarfile.TarInfo("archive.json")
        about.size = 13
        written.addfile(about, io.BytesIO(b'{"format": 1}'))
        member = tarfile.TarInfo(NAME)
        member.size, member.pax_headers = 5, {**sparse, key: value}
        written.addfile(member, io.BytesIO(b"hello"))
    with pytest.raises(FormatError):
        take(made.getvalue())
    assert files(tmp_path / "cache") == []


def test_an_archive_over_the_quota_is_refused(
    take: Callable[[bytes], Any], filled: Path, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match="1000000 bytes at most"):
        take(tar(*sound(filled), (NAME, bytes(QUOTA), {})))
    assert list(problems(store(tmp_path / "cache"))) == []


def test_entries_that_were_not_used_for_long_give_way_to_an_import(
    saved: Path, archive: bytes, filled: Path, tmp_path: Path
) -> None:
    cache, path = tmp_path / "cache", tmp_path / "seed.tar"
    path.write_bytes(archive)
    start(saved, cache, ep__number="1")
    import_entries(store(cache), path, only_entry(filled).size + 100)
    assert only_entry(cache).key == only_entry(filled).key


def test_an_entry_of_a_known_object_needs_it_not_again(
    take: Callable[[bytes], Any], filled: Path, tmp_path: Path
) -> None:
    members = sound(filled)
    take(tar(*members))
    store(tmp_path / "cache").entries_folder.joinpath(f"{only_entry(filled).key}.json").unlink()
    assert len(take(tar(members[-1]))) == 1


def test_an_export_leaves_what_is_there(saved: Path, filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "there.tar"
    target.write_bytes(b"mine")
    entries = store(filled).sound_entries()
    with pytest.raises(ort.InvalidArgument, match=r"there\.tar exists already; name another"):
        export_entries(store(filled), entries, target)
    assert target.read_bytes() == b"mine"
    with pytest.raises(
        ort.Fail, match=r"the archive .*a\.tar cannot be written: .*folder does not exist"
    ):
        export_entries(store(filled), entries, tmp_path / "gone" / "a.tar")


def test_an_import_of_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ort.Fail, match=r"the entries of .*x\.tar cannot be imported into"):
        import_entries(store(tmp_path / "cache"), tmp_path / "x.tar", QUOTA)


def test_an_export_names_no_user(archive: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        found = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in opened}
    assert found == {(0, 0, "", "", 0)}


def test_a_path_with_terminal_codes_is_listed_without_them(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ort_lite.cli.app import run_command  # noqa: PLC0415 - for this test alone

    entry = replace(only_entry(filled), source="\x1b]0;owned\x07\udcff/m.onnx")
    members = sound(filled)[:-1]
    path = tmp_path / "seed.tar"
    path.write_bytes(tar(*members, (f"entries/{entry.key}.json", entry.to_bytes(), {})))
    import_entries(store(tmp_path / "cache"), path, QUOTA)
    assert run_command(["cache", "ls", "--dir", str(tmp_path / "cache")]) == 0
    out = capsys.readouterr().out
    assert "\\x1b]0;owned\\x07\\udcff/m.onnx" in out
