"""A file or folder as an argument: an empty one would mean the present folder."""

from __future__ import annotations

import argparse
from pathlib import Path


def path(text: str) -> Path:
    """``text`` as a path; argparse refuses an empty one, naming the argument."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r}: the path of a file or folder is expected")
    return Path(text)
