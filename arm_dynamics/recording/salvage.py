"""Recordings that were cut off: what is whole of them is given an end.

An MCAP file is a row of records: one byte of kind, eight of length (little-endian), the content.
A reader wants a closing record and the magic bytes behind the last one. Source: MCAP format
specification, version 0, sections "Records" and "Footer".
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAGIC = b"\x89MCAP0\r\n"
HEAD = 9
"""Bytes of a record's kind and length."""
DATA_END = b"\x0f" + (4).to_bytes(8, "little") + bytes(4)
FOOTER = b"\x02" + (20).to_bytes(8, "little") + bytes(20)
"""Without a summary: readers then look through all records."""


def is_finished(folder: Path) -> bool:
    """Whether a recording was closed: its metadata comes last."""
    return (folder / "metadata.yaml").exists()


@contextmanager
def finished(folder: Path) -> Iterator[Path]:
    """``folder`` as it is when it has its metadata; else a mended copy of its MCAP file."""
    files = [] if is_finished(folder) else sorted(folder.glob("*.mcap"))
    if len(files) != 1:
        yield folder
        return
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / files[0].name
        copy.write_bytes(mended(files[0].read_bytes()))
        yield copy


def mended(content: bytes) -> bytes:
    """The whole records at the beginning of an MCAP file's ``content``, and an end."""
    at = len(MAGIC)
    while True:
        end = at + HEAD + int.from_bytes(content[at + 1 : at + HEAD], "little")
        if (
            at + HEAD > len(content)
            or end > len(content)
            or content[at] in (DATA_END[0], FOOTER[0])
        ):
            return content[:at] + DATA_END + FOOTER + MAGIC
        at = end
