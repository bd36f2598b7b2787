"""A rosbag2 folder with an MCAP file in it, written and read through rosbags."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import RecordingError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.recording.staged_file import StagedFile, repaired

MISSING = f"recordings need rosbags: {to_install('record')}"
DESCRIPTION, COMMANDS, STATES = "/recording", "/joint_commands", "/joint_states"
VOLTAGES, MIXED, ACTUATORS = "/voltage_commands", "/mixed_commands", "/actuator_states"
GAPS = "/recording_gaps"
TYPES = {
    DESCRIPTION: "std_msgs/msg/String",
    GAPS: "std_msgs/msg/String",
    COMMANDS: "sensor_msgs/msg/JointState",
    VOLTAGES: "std_msgs/msg/Float64MultiArray",
    MIXED: "std_msgs/msg/Float64MultiArray",
    STATES: "sensor_msgs/msg/JointState",
    ACTUATORS: "std_msgs/msg/Float64MultiArray",
}
ARRAYS = {"voltage": VOLTAGES, "mixed": MIXED}
"""Topic of the commands on those interfaces that a JointState has no field for."""
AT_RISK = 1000
"""Messages that a killed process may take with it, about a second."""
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
"""Messages that belong together, made only if they are recorded."""


class BagWriter:
    """A new rosbag2 folder. Raises RecordingRefused when it is there already or can not be.

    Messages are collected in memory and written in whole chunks. After a failed write the file
    ends with its last whole chunk, and the next ``flush`` tries again.
    """

    fault = ""

    def __init__(self, folder: Path) -> None:
        bags, self._types = _library()
        if folder.exists():
            raise RecordingError(f"{folder} exists already: name a new folder")
        self._bag = bags.Writer(
            folder,
            version=FORMAT,
            storage_plugin=import_module("rosbags.rosbag2").StoragePlugin.MCAP,
        )
        try:
            self._bag.open()
            self._bag.storage.bio = self._file = StagedFile(self._bag.storage.bio)
        except OSError as error:
            raise RecordingError(f"{folder} cannot be made: {error.strerror}") from error
        self._folder = folder
        self._topics: dict[str, Any] = {}
        self._pending = 0

    @property
    def due(self) -> bool:
        """Whether so much is in memory that it has to be written."""
        return self._pending >= AT_RISK

    def put(self, time: int, content: Content) -> bool:
        """Record ``content`` of ``time`` [ns] and wait for the disk; raises OSError."""
        for message in content():
            self.add(message)
        if self.due:
            self.flush()
        return True

    def add(self, message: Message) -> None:
        """Take one message into memory."""
        kind = TYPES[message.topic]
        if isinstance(message.values, str):
            made = self._type(kind)(message.values)
        elif isinstance(message.values, Mapping):
            made = self._joints(message.time, message.names, message.values)
        else:
            dimension = self._type("std_msgs/msg/MultiArrayDimension")
            layout = self._type("std_msgs/msg/MultiArrayLayout")
            dim = [dimension(label, 1, 1) for label in message.names]
            made = self._type(kind)(layout(dim, 0), np.asarray(message.values, dtype=float))
        self._write(message.topic, message.time, made)

    def flush(self) -> None:
        """Write what is in memory to the disk; raises OSError and keeps it when that fails."""
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
            for name in ("metadata.yaml", "metadata.yaml.tmp"):  # half written: worse than none
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink(missing_ok=True)
            raise
        finally:
            self._file.abandon()

    def _joints(self, time: int, names: Sequence[str], given: Mapping[str, ArrayLike]) -> Any:
        stamp = self._type("builtin_interfaces/msg/Time")(*divmod(time, 1_000_000_000))
        header = self._type("std_msgs/msg/Header")(stamp, "base_link")
        values = (np.asarray(given.get(f, []), float) for f in ("position", "velocity", "effort"))
        return self._type("sensor_msgs/msg/JointState")(header, list(names), *values)

    def _write(self, topic: str, time: int, message: Any) -> None:
        if topic not in self._topics:
            self._topics[topic] = self._bag.add_connection(
                topic, TYPES[topic], typestore=self._types, offered_qos_profiles=[_qos(topic)]
            )
        self._bag.write(self._topics[topic], time, self._types.serialize_cdr(message, TYPES[topic]))
        self._pending += 1

    def _type(self, name: str) -> Any:
        return self._types.types[name]


def messages(folder: Path) -> Iterator[tuple[str, int, Any]]:
    """Topic, time [ns] and message of all that a recording holds, in the order of writing.

    One that was never finished is read as far as it goes. Raises RecordingRefused for a folder
    that is not there or no recording, and for what cannot be read in it.
    """
    bags, types = _library()
    if not folder.exists():
        raise RecordingError(f"{folder}: no such recording")
    with repaired(folder) as path:
        try:
            with bags.Reader(path) as bag:
                known = [c for c in bag.connections if TYPES.get(c.topic) == c.msgtype]
                for connection, time, data in bag.messages(known):
                    yield connection.topic, time, types.deserialize_cdr(data, connection.msgtype)
        except FileNotFoundError as error:
            said = "neither metadata.yaml nor one .mcap file is in it"
            raise RecordingError(f"{folder.resolve()} is no recording: {said}") from error
        except Exception as error:  # whatever a damaged file makes the readers raise
            what = " ".join(str(error).split()) or type(error).__name__
            raise RecordingError(f"recording {folder} is damaged: {what}") from error


def _library() -> tuple[Any, Any]:
    """The rosbag2 half of rosbags and the message types of ROS 2; RecordingRefused without."""
    try:
        bags, types = import_module("rosbags.rosbag2"), import_module("rosbags.typesys")
    except ImportError as error:
        raise RecordingError(MISSING) from error
    return bags, types.get_typestore(types.Stores.ROS2_JAZZY)


def _qos(topic: str) -> Any:
    """As the nodes offer: reliable; the description stays for those who come late."""
    i = import_module("rosbags.interfaces")
    lasting = topic == DESCRIPTION
    durability = i.QosDurability.TRANSIENT_LOCAL if lasting else i.QosDurability.VOLATILE
    unlimited = i.QosTime(9223372036, 854775807)
    return i.Qos(
        i.QosHistory.KEEP_LAST, 10, i.QosReliability.RELIABLE, durability,
        unlimited, unlimited, i.QosLiveliness.AUTOMATIC, unlimited, False,
    )  # fmt: skip
