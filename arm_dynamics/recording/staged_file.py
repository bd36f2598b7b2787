"""A file that grows by whole pieces: a write that fails leaves nothing of its piece behind.

Recordings that were cut off: what is whole of them is given an end.

An MCAP file is a row of records: one byte of kind, eight of length (little-endian), the content.
A reader wants a closing record and the magic bytes behind the last one. Source: MCAP format
specification, version 0, sections "Records" and "Footer".
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from io import BufferedWriter
from pathlib import Path


class StagedFile:
    """Collects what is written in memory; ``flush`` puts all of it on the disk, or nothing.

    A full disk cuts a write anywhere, and a buffered file does not say where. Here the file is
    cut back to its last whole piece, which stays readable, and the next ``flush`` tries again.
    """

    def __init__(self, file: BufferedWriter) -> None:
        file.flush()
        self._file, self._staged = file, bytearray()
        self._size = os.fstat(file.fileno()).st_size

    def write(self, data: bytes | memoryview) -> int:
        """Collect ``data``."""
        self._staged += data
        return len(data)

    def tell(self) -> int:
        """Position behind all that was collected."""
        return self._size + len(self._staged)

    def flush(self) -> None:
        """Write what is collected; raises OSError, FileNotFoundError for a removed file."""
        number = self._file.fileno()
        if os.fstat(number).st_nlink == 0:
            raise FileNotFoundError(ENOENT, "the file was removed", self._file.name)
        try:
            with memoryview(self._staged) as rest:
                done = 0
                while done < len(rest):
                    done += os.write(number, rest[done:])
        except OSError:
            os.ftruncate(number, self._size)
            os.lseek(number, self._size, os.SEEK_SET)
            raise
        self._size += len(self._staged)
        self._staged.clear()

    def close(self) -> None:
        """Write what is collected and close; raises OSError as ``flush``."""
        self.flush()
        self._file.close()

    def abandon(self) -> None:
        """Close without what is collected; after ``close`` without effect."""
        self._file.close()


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
def repaired(folder: Path) -> Iterator[Path]:
    """``folder`` as it is when it has its metadata; else a mended copy of its MCAP file."""
    files = [] if is_finished(folder) else sorted(folder.glob("*.mcap"))
    if len(files) != 1:
        yield folder
        return
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / files[0].name
        copy.write_bytes(truncate_to_valid(files[0].read_bytes()))
        yield copy


def truncate_to_valid(content: bytes) -> bytes:
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
