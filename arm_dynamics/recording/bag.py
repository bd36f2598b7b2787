"""A rosbag2 folder with an MCAP file in it, written and read through rosbags.

The file stays readable if the program or the disk fails: ``StagedFile`` writes complete chunks, and
``repaired`` yields a copy of a file that was cut off. An MCAP file is a sequence of records: one
byte of kind, eight of length (little-endian), the content. Readers require a closing record and the
magic bytes after the last one. Source: MCAP format specification, version 0, sections "Records" and
"Footer".
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from errno import ENOENT
from importlib import import_module
from io import BufferedWriter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import RecordingError
from arm_dynamics.core.requirements import to_install

MISSING = f"recording: rosbags is not installed; {to_install('record')}"
DESCRIPTION, COMMANDS, STATES = "/recording", "/joint_commands", "/joint_states"
VOLTAGES, MIXED, ACTUATORS = "/voltage_commands", "/mixed_commands", "/actuator_states"
GAPS, REFERENCES, URDF = "/recording_gaps", "/joint_references", "/robot_description"
TYPES = {
    DESCRIPTION: "std_msgs/msg/String",
    GAPS: "std_msgs/msg/String",
    COMMANDS: "sensor_msgs/msg/JointState",
    VOLTAGES: "std_msgs/msg/Float64MultiArray",
    MIXED: "std_msgs/msg/Float64MultiArray",
    STATES: "sensor_msgs/msg/JointState",
    ACTUATORS: "std_msgs/msg/Float64MultiArray",
    REFERENCES: "sensor_msgs/msg/JointState",
    URDF: "std_msgs/msg/String",
}
ARRAYS = {"voltage": VOLTAGES, "mixed": MIXED}
"""Topic of the commands on interfaces without a field in JointState."""
FLUSH_COUNT = 1000
"""Messages in memory that a killed process loses: about one second."""
FORMAT = 9
"""Version of rosbag2's metadata, that of ROS 2 Jazzy and later."""


class Message(NamedTuple):
    """One message: a text, one labeled number per name, or the fields of a JointState."""

    topic: str
    time: int
    """[ns]"""
    names: Sequence[str]
    values: str | Vector | Mapping[str, Vector]


Content = Callable[[], Sequence[Message]]
"""Creates messages of one period, called only if they are recorded."""


class BagWriter:
    """A new rosbag2 folder; raises RecordingError if it exists or cannot be created.

    Messages are collected in memory and written in complete chunks. After a failed write the file
    ends with its last complete chunk, and the next ``flush`` tries again.
    """

    fault = ""

    def __init__(self, folder: Path) -> None:
        bags, self._types = _library()
        if folder.exists():
            raise RecordingError(f"recording {folder}: exists already; expected a new folder")
        self._bag = bags.Writer(
            folder,
            version=FORMAT,
            storage_plugin=import_module("rosbags.rosbag2").StoragePlugin.MCAP,
        )
        try:
            self._bag.open()
            self._bag.storage.bio = self._file = StagedFile(self._bag.storage.bio)
        except OSError as error:
            raise RecordingError(
                f"recording {folder}: {error.strerror}; expected a folder that can be created"
            ) from error
        self._folder = folder
        self._topics: dict[str, Any] = {}
        self._pending = 0

    @property
    def due(self) -> bool:
        """Whether enough messages are in memory to be written."""
        return self._pending >= FLUSH_COUNT

    def put(self, time: int, content: Content) -> bool:
        """Record ``content`` of ``time`` [ns] and wait for the disk; raises OSError."""
        for message in content():
            self.add(message)
        if self.due:
            self.flush()
        return True

    def add(self, message: Message) -> None:
        """Add one message to memory."""
        kind = TYPES[message.topic]
        if isinstance(message.values, str):
            content = self._type(kind)(message.values)
        elif isinstance(message.values, Mapping):
            fields, given = ("position", "velocity", "effort"), message.values
            stamp = self._type("builtin_interfaces/msg/Time")(*divmod(message.time, 1_000_000_000))
            header = self._type("std_msgs/msg/Header")(stamp, "base_link")
            arrays = (np.asarray(given.get(f, ()), float) for f in fields)
            content = self._type(kind)(header, list(message.names), *arrays)
        else:
            dimension = self._type("std_msgs/msg/MultiArrayDimension")
            layout = self._type("std_msgs/msg/MultiArrayLayout")
            dim = [dimension(label, 1, 1) for label in message.names]
            content = self._type(kind)(layout(dim, 0), np.asarray(message.values, dtype=float))
        self.write(message.topic, message.time, content)

    def write(self, topic: str, time: int, content: Any) -> None:
        """Add a ROS message to the current chunk; connect its topic if it is the first one."""
        kind = TYPES[topic]
        if topic not in self._topics:
            self._topics[topic] = self._bag.add_connection(
                topic, kind, typestore=self._types, offered_qos_profiles=[_qos(topic)]
            )
        self._bag.write(self._topics[topic], time, self._types.serialize_cdr(content, kind))
        self._pending += 1

    def flush(self) -> None:
        """Write the messages in memory; raises OSError, and keeps them, if that fails."""
        if self._pending:
            self._bag.storage.close_chunk()
            self._pending = 0
        self._file.flush()

    def close(self, **metadata: str) -> None:
        """Write index and metadata, the given entries too; may be called twice. Raises OSError."""
        bag, self._bag = self._bag, None
        if bag is None:
            return
        try:
            if self._pending:
                bag.storage.close_chunk()
            self._file.flush()
            for key, value in metadata.items():
                bag.set_custom_data(key, value)
            bag.close()
        except OSError:
            for name in ("metadata.yaml", "metadata.yaml.tmp"):  # half-written, it hides the file
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink(missing_ok=True)
            raise
        finally:
            self._file.abandon()

    def _type(self, name: str) -> Any:
        return self._types.types[name]


def messages(folder: Path, topics: Mapping[str, str] = TYPES) -> Iterator[tuple[str, int, Any]]:
    """Yield topic, time [ns] and message of a recording, in the order of writing.

    A recording that was not finished is read up to its last complete record.

    Parameters
    ----------
    folder : Path
        Folder of a rosbag2, or one .mcap file.
    topics : Mapping[str, str]
        Topics to read, with their types (default: those of this package).

    Raises
    ------
    RecordingError
        If the folder does not exist, is not a recording, or cannot be read.

    """
    with _reader(folder) as (bag, types):
        known = [c for c in bag.connections if topics.get(c.topic) == c.msgtype]
        if not known:  # rosbags reads an empty list as all topics
            return
        for connection, time, data in bag.messages(known):
            yield connection.topic, time, types.deserialize_cdr(data, connection.msgtype)


def topic_types(folder: Path) -> dict[str, str]:
    """Return the topics of a recording with their types; raises RecordingError."""
    with _reader(folder) as (bag, _):
        return {c.topic: c.msgtype for c in bag.connections}


@contextlib.contextmanager
def _reader(folder: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a reader and the message types; every failure is a RecordingError."""
    bags, types = _library()
    if not folder.exists():
        raise RecordingError(f"recording {folder} does not exist")
    with repaired(folder) as path:
        try:
            with bags.Reader(path) as bag:
                yield bag, types
        except FileNotFoundError as error:
            raise RecordingError(
                f"{folder.resolve()}: contents = no recording;"
                " expected metadata.yaml or one .mcap file"
            ) from error
        except Exception as error:  # any error that a damaged file causes
            if "Unrecognized storage format" in str(error):
                raise RecordingError(
                    f"recording {folder}: format = '{folder.suffix}'; expected a folder of rosbag2,"
                    " or a .mcap or .db3 file"
                ) from error
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise RecordingError(
                f"recording {folder} is damaged: {reason}; expected a complete recording"
            ) from error


def _library() -> tuple[Any, Any]:
    """Return rosbags.rosbag2 and the message types of ROS 2; raises RecordingError if missing."""
    try:
        bags, types = import_module("rosbags.rosbag2"), import_module("rosbags.typesys")
    except ImportError as error:
        raise RecordingError(MISSING) from error
    return bags, types.get_typestore(types.Stores.ROS2_JAZZY)


def _qos(topic: str) -> Any:
    """Return the QoS of the nodes: reliable; transient local for descriptions of the arm."""
    i = import_module("rosbags.interfaces")
    lasting = topic in (DESCRIPTION, URDF)
    durability = i.QosDurability.TRANSIENT_LOCAL if lasting else i.QosDurability.VOLATILE
    unlimited = i.QosTime(9223372036, 854775807)
    return i.Qos(
        i.QosHistory.KEEP_LAST, 10, i.QosReliability.RELIABLE, durability,
        deadline=unlimited, lifespan=unlimited,
        liveliness=i.QosLiveliness.AUTOMATIC, liveliness_lease_duration=unlimited,
        avoid_ros_namespace_conventions=False,
    )  # fmt: skip


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


@contextlib.contextmanager
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
