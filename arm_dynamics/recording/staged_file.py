"""MCAP files that stay readable: atomic writes, and repair of files that were cut off.

An MCAP file is a sequence of records: one byte of kind, eight of length (little-endian), the
content. Readers require a closing record and the magic bytes after the last one. Source: MCAP
format specification, version 0, sections "Records" and "Footer".
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
    """Collects written bytes in memory; ``flush`` writes all of them to the disk, or none.

    A full disk interrupts a write anywhere, and a buffered file does not report where. Here the
    file is truncated to its last complete flush, and the next ``flush`` tries again.
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
        """Return the position after the collected bytes."""
        return self._size + len(self._staged)

    def flush(self) -> None:
        """Write the collected bytes; raises OSError, FileNotFoundError for a removed file."""
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
        """Write the collected bytes and close; raises OSError as ``flush``."""
        self.flush()
        self._file.close()

    def abandon(self) -> None:
        """Close without writing; no effect after ``close``."""
        self._file.close()


MAGIC = b"\x89MCAP0\r\n"
RECORD_HEADER = 9
"""Bytes of a record's kind and length."""
DATA_END = b"\x0f" + (4).to_bytes(8, "little") + bytes(4)
FOOTER = b"\x02" + (20).to_bytes(8, "little") + bytes(20)
"""Footer without a summary: readers then read all records."""


def is_finished(folder: Path) -> bool:
    """Return whether a recording was closed: its metadata is written last."""
    return (folder / "metadata.yaml").exists()


@contextmanager
def repaired(folder: Path) -> Iterator[Path]:
    """Yield ``folder`` if it was closed, else a repaired copy of its MCAP file."""
    files = [] if is_finished(folder) else sorted(folder.glob("*.mcap"))
    if len(files) != 1:
        yield folder
        return
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / files[0].name
        copy.write_bytes(truncate_to_valid(files[0].read_bytes()))
        yield copy


def truncate_to_valid(content: bytes) -> bytes:
    """Return the complete records of an MCAP file's ``content``, and a valid end."""
    at = len(MAGIC)
    while True:
        end = at + RECORD_HEADER + int.from_bytes(content[at + 1 : at + RECORD_HEADER], "little")
        if (
            at + RECORD_HEADER > len(content)
            or end > len(content)
            or content[at] in (DATA_END[0], FOOTER[0])
        ):
            return content[:at] + DATA_END + FOOTER + MAGIC
        at = end
