"""Warnings that processes started by this one do not issue."""

from __future__ import annotations

import os


def ignoring(category: str, module: str) -> dict[str, str]:
    """Return the environment in which Python ignores a category of warnings of a module.

    Parameters
    ----------
    category : str
        Name of a built-in category of warnings.
    module : str
        Module in whose code the warnings are issued.

    Returns
    -------
    dict of str to str
        The environment variable with this filter and those of this process.

    """
    filters = os.environ.get("PYTHONWARNINGS"), f"ignore::{category}:{module}"
    return {"PYTHONWARNINGS": ",".join(filter(None, filters))}
