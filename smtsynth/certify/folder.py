"""Certificate folders: written beside their place and renamed, so that none is ever there by half."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from smtsynth.certify.manifest import FORMAT, MANIFEST, SEAL, canonical
from smtsynth.errors import InputError

MAX_MANIFEST = 2**28  # bytes


def read_manifest(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The manifest of a certificate folder, as data and as it is written. InputError where there is none."""
    expected = "a folder that solve --certificate wrote"
    if not folder.is_dir():
        raise InputError("is no folder", where=str(folder), expected=expected)
    try:
        with open(folder / MANIFEST, "rb") as file:
            text = file.read(MAX_MANIFEST + 1)
        data = json.loads(text) if len(text) <= MAX_MANIFEST else None
    except OSError as error:
        raise InputError(
            f"{MANIFEST} cannot be read ({error.strerror or error})", where=str(folder), expected=expected
        ) from None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("parts"), dict):
        raise InputError(f"{MANIFEST} is not that of a certificate", where=str(folder), expected=expected)
    return data, text


def check_place(target: Path) -> None:
    """InputError where a certificate can't be written: something else is there, or the folder around it isn't."""
    expected = "a new folder, an empty one, or a certificate that is to be replaced"
    if os.path.lexists(target):
        if not target.is_dir():
            raise InputError("is there already and no folder", where=str(target), expected=expected)
        if any(target.iterdir()) and not is_certificate(target):
            raise InputError("holds other files", where=str(target), expected=expected)
    elif not target.parent.is_dir():
        raise InputError("the folder around it isn't there", where=str(target), expected=expected)


def is_certificate(folder: Path) -> bool:
    """Whether a folder holds a certificate and nothing else, so that it may be replaced."""
    try:
        data, text = read_manifest(folder)
        own = {MANIFEST, SEAL, *data["parts"]}
        return canonical(data) == text and all(
            entry.name in own and entry.is_file(follow_symlinks=False) for entry in os.scandir(folder)
        )
    except (InputError, OSError, ValueError, TypeError, RecursionError):
        return False


@contextlib.contextmanager
def staged(place: Path) -> Iterator[Path]:
    """A new folder beside `place` to write into; at the end it takes the place, and where that fails it goes away."""
    target = Path(os.path.realpath(place))
    check_place(target)
    try:
        beside = Path(tempfile.mkdtemp(prefix=".smtsynth-", dir=target.parent))
    except OSError as error:
        raise _cannot(target, error) from None
    try:
        yield beside
        try:
            _sync(beside)
            mask = os.umask(0)
            os.umask(mask)
            beside.chmod(0o777 & ~mask)
            check_place(target)
            _replace(beside, target)
        except OSError as error:
            raise _cannot(target, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _replace(new: Path, target: Path) -> None:
    """Rename `new` to `target`; what is there goes away only once it is replaced."""
    if not (target.is_dir() and any(target.iterdir())):
        os.replace(new, target)
        return
    old = Path(tempfile.mkdtemp(prefix=".smtsynth-", dir=target.parent))
    os.replace(target, old)
    try:
        os.replace(new, target)
    except OSError:
        os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def _cannot(target: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written ({error.strerror or error})", where=str(target), expected="a writable place")
