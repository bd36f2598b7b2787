"""Load a URDF text with its visible geometry, for drawing only."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import Any

from arm_dynamics.errors import ConfigError, InvalidValue
from arm_dynamics.model.mesh_files import find_mesh
from arm_dynamics.requirements import to_install

MISSING = f"the browser view needs viser and yourdfpy: {to_install('viewer')}"


def load_visuals(text: str, folder: Path | None) -> Any:
    """Return a ``yourdfpy.URDF`` of ``text``, its meshes looked up from ``folder``.

    Meshes outside the description's folders and ROS packages are not opened (``mesh_files``).

    Raises ConfigError when yourdfpy is not installed, InvalidValue for a text or a mesh that
    cannot be read.
    """
    try:
        yourdfpy = import_module("yourdfpy")
    except ImportError as error:
        raise ConfigError(MISSING) from error

    def find(fname: str) -> str:
        return str(find_mesh(fname, folder) or "")

    try:
        return yourdfpy.URDF.load(io.BytesIO(text.encode()), filename_handler=find)
    except Exception as error:  # whatever XML, mesh and image readers raise
        raise InvalidValue(f"urdf: cannot be drawn: {type(error).__name__}: {error}") from error
