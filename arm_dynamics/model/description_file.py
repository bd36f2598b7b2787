"""Files that describe an arm: URDF, xacro and MJCF, read as the text of a URDF."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.model.mesh_files import find_package
from arm_dynamics.model.xml_source import XmlSyntaxError, parse_xml, read_text

XACRO = "xacro:"
"""Prefix of the elements of xacro."""


def read_urdf(path: Path) -> str:
    """Return the text of a URDF file, of an expanded xacro file, or of a converted MJCF file.

    Elements of MJCF that URDF lacks give a RuntimeWarning.

    Raises
    ------
    ConfigError
        For a file that cannot be read, expanded or converted.

    """
    text = read_text(path)
    if path.suffix == ".xacro" or _has_xacro(text):
        return _expanded(path)
    if "<mujoco" in text:
        from arm_dynamics.model.mjcf.reader import is_mjcf, urdf_of_mjcf  # noqa: PLC0415 - rare

        if is_mjcf(text):
            converted = urdf_of_mjcf(path)
            for note in converted.notes:
                warnings.warn(f"{path}: MJCF: {note}", RuntimeWarning, stacklevel=3)
            return converted.text
    return text


def _has_xacro(text: str) -> bool:
    """Return whether an XML text has elements of xacro; an expanded file has only the namespace."""
    if XACRO not in text:
        return False
    with contextlib.suppress(XmlSyntaxError):  # which the audit reports
        return any(node.tag.startswith(XACRO) for node in parse_xml(text).walk())
    return False


def _expanded(path: Path) -> str:
    """Return the text of a xacro file with default arguments; raise ConfigError with its cause."""
    try:
        import xacro  # noqa: PLC0415 - only for xacro files
        from xacro import substitution_args  # noqa: PLC0415
    except ImportError as error:
        remedy = f"{to_install('xacro')}, or apt install ros-$ROS_DISTRO-xacro"
        raise ConfigError(f"{path}: xacro is not installed; {remedy}") from error
    log, missing = io.StringIO(), list[str]()
    try:
        with _packages_near(path, substitution_args, missing), contextlib.redirect_stderr(log):
            document = xacro.process_file(str(path))
    except Exception as error:  # of expressions in the file, and of files that it includes
        if missing:
            raise ConfigError(
                f"{path}: $(find {missing[0]}): package '{missing[0]}' is not above the file nor"
                " installed; source its workspace, or put its folder next to the description"
            ) from error
        cause = " ".join(str(error).split()) or type(error).__name__
        remedy = "expand it with its arguments: xacro FILE NAME:=VALUE > arm.urdf"
        raise ConfigError(f"{path}: xacro: {cause}; {remedy}") from error
    for line in log.getvalue().splitlines():
        if line.strip():
            warnings.warn(f"{path}: xacro: {line.strip()}", RuntimeWarning, stacklevel=4)
    return str(document.toprettyxml(indent="  "))


@contextlib.contextmanager
def _packages_near(path: Path, substitution: Any, missing: list[str]) -> Iterator[None]:
    """Let ``$(find NAME)`` return packages at and above the file, then installed ones.

    The index of ament, which xacro reads, has installed packages only. Names that are not found are
    added to ``missing``.
    """
    original = substitution._eval_find

    def find(name: str) -> str:
        folder = find_package(name, path.parent)
        if folder is None:
            missing.append(name)
            raise LookupError(name)
        return str(folder)

    substitution._eval_find = substitution._eval_dict["find"] = find
    try:
        yield
    finally:
        substitution._eval_find = substitution._eval_dict["find"] = original
