"""A file that grows by whole pieces: a write that fails leaves nothing of its piece behind."""

from __future__ import annotations

import os
from errno import ENOENT
from io import BufferedWriter


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
