"""A bounded queue of messages, and a thread that writes them.

The thread that moves the arm never waits for the disk. If the disk is full, slow or removed, the
queue fills. Messages are then dropped, counted and reported until it is half empty. A message on
``/recording_gaps`` marks where messages are missing.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from threading import Condition, Thread

from arm_dynamics.recording.bag import GAPS, BagWriter, Content, Message
from arm_dynamics.safety.events import Events

QUEUE_CAPACITY = 32 * 2**20
"""Size of the queue [bytes], estimated: at least 10 s of the states and commands of a seven-joint
arm at 1 kHz, 100 s at 100 Hz."""
RETRY_PERIOD = 1.0
"""Time between two attempts to write to a disk that fails [s]."""
REPORT_PERIOD = 10.0
"""Time between two events of dropped messages [s]."""
CLOSE_TIMEOUT = 5.0
"""Longest time that ``close`` waits for the disk [s]."""
MESSAGE_OVERHEAD, ARRAY_OVERHEAD = 700, 180
"""Memory of a message and of each of its arrays in addition to their contents [bytes]."""


class QueuedBag:
    """A BagWriter behind a queue; one thread puts, and no call raises an error of the disk.

    Events: ``recording_delayed`` if writing fails, ``recording_dropped`` if messages are dropped,
    immediately and every 10 s, ``recording_resumed`` after a gap, ``recording_failed``.
    """

    def __init__(self, bag: BagWriter, name: str, events: Events, patience: float = 0.0) -> None:
        """``patience``: longest time [s] that ``put`` waits for free space, once for each gap."""
        self.dropped = 0
        """Calls of ``put`` whose messages were dropped."""
        self.fault = ""
        """Cause of the failure of the recording; "" if it has not failed."""
        self._bag, self._name, self._events, self._patience = bag, name, events, patience
        self._queue: deque[tuple[int, Sequence[Message]]] = deque()
        self._size = 0
        self._gap: tuple[int, int, int] | None = None
        self._reported = 0.0
        self._disk_error = ""
        self._closing = False
        self._changed = Condition()
        self._thread = Thread(target=self._serve, name="recording", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Present problem of the recording; "" if none."""
        if self.fault:
            return self.fault
        if self._gap:
            return f"recording: {self._gap[2]} dropped since t = {self._gap[0] * 1e-9:.3f} s"
        return self._disk_error and f"recording is delayed: {self._disk_error}"

    def values(self) -> dict[str, str]:
        """Return size of the queue and number of drops, for diagnostics."""
        return {
            "recording queue [MiB]": f"{self._size / 2**20:.1f} of {QUEUE_CAPACITY / 2**20:.0f}",
            "recording dropped": str(self.dropped),
        }

    def put(self, time: int, content: Content) -> bool:
        """Queue ``content`` of ``time`` [ns]; return False if it is dropped."""
        with self._changed:
            if self.fault or self._closing:
                space = False
            elif self._gap:
                space = self._size <= QUEUE_CAPACITY / 2
            else:
                space = self._changed.wait_for(lambda: self._size < QUEUE_CAPACITY, self._patience)
        if not space:
            self._drop(time)
            return False
        messages = list(content())
        if self._gap:
            messages.insert(0, self._end_gap(time))
        size = sum(map(_size, messages))
        with self._changed:
            self._queue.append((size, messages))
            self._size += size
            self._changed.notify_all()
        return True

    def close(self) -> None:
        """Write the queue and finish, within ``CLOSE_TIMEOUT``; may be called twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            self._fail(f"the disk does not respond within {CLOSE_TIMEOUT:g} s")

    def _drop(self, at: int) -> None:
        """Count a dropped call of ``put``; report it at the start of a gap and every 10 s."""
        first, _, count = self._gap or (at, at, 0)
        self._gap = first, at, count + 1
        self.dropped += 1
        now = time.monotonic()
        if not self.fault and (count == 0 or now - self._reported > REPORT_PERIOD):
            self._reported = now
            why = self._disk_error or "the disk is too slow"
            self._events.report(
                "recording_dropped", f"recording {self._name}: {count + 1} dropped: {why}"
            )

    def _end_gap(self, at: int) -> Message:
        """End the gap; return the message that marks it."""
        assert self._gap is not None
        first, last, count = self._gap
        self._gap = None
        missing = {"first": first, "last": last, "dropped": count}
        self._events.report(
            "recording_resumed",
            f"recording {self._name}: {count} dropped between t = {first * 1e-9:.3f} s"
            f" and {last * 1e-9:.3f} s",
        )
        return Message(GAPS, at, (), json.dumps(missing))

    # --- writing thread

    def _serve(self) -> None:
        """Write queued messages until ``close`` or a failure."""
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: bool(self._queue or self._closing or self.fault))
                    if not self._queue or self.fault:
                        break
                    size, messages = self._queue.popleft()
                for message in messages:
                    self._bag.add(message)
                if self._bag.due:
                    self._flush()
                with self._changed:
                    self._size -= size
                    self._changed.notify_all()
            if self._gap:
                self._bag.add(self._end_gap(self._gap[1]))
            self._bag.close(dropped=str(self.dropped))
        except Exception as error:  # any error of disk or library: the arm continues
            self._fail(str(error))

    def _flush(self) -> None:
        """Write to the disk; retry on failure until ``close`` is called."""
        while True:
            try:
                self._bag.flush()
            except FileNotFoundError:
                raise
            except OSError as error:
                if not self._disk_error:
                    text = f"recording {self._name} waits for the disk: {error}"
                    self._events.report("recording_delayed", text)
                self._disk_error = str(error)
            else:
                self._disk_error = ""
                return
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, RETRY_PERIOD):
                    raise OSError(self._disk_error)

    def _fail(self, why: str) -> None:
        if not self.fault:
            self.fault = f"recording {self._name} failed: {why}"
            self._events.report("recording_failed", self.fault)
        with self._changed:
            self.dropped += len(self._queue)
            self._queue.clear()
            self._size = 0
            self._changed.notify_all()


def _size(message: Message) -> int:
    """Approximate memory of a message [bytes]."""
    values = message.values
    if isinstance(values, str):
        return MESSAGE_OVERHEAD + len(values)
    arrays = list(values.values()) if not hasattr(values, "nbytes") else [values]
    return MESSAGE_OVERHEAD + sum(ARRAY_OVERHEAD + array.nbytes for array in arrays)
