"""Messages on their way to the disk: a bounded queue, and a thread that writes.

The thread that moves the arm never waits for the disk. When the disk is full, slow or gone, the
queue fills; from then on messages are dropped, counted and reported, until it is half empty.
The recording then has a message on ``/recording_gaps`` where messages are missing.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from threading import Condition, Thread

from arm_dynamics.recording.bag import GAPS, BagWriter, Content, Message
from arm_dynamics.safety.events import Events

LIMIT = 32 * 2**20
"""Size of the queue [bytes], estimated: 10 s at least of a seven-joint arm's states and commands
at 1 kHz, 100 s at 100 Hz."""
RETRY = 1.0
"""Time [s] between two tries to write to a disk that rejects."""
REPEAT = 10.0
"""Time [s] between two events of messages dropped."""
CLOSING = 5.0
"""Longest time [s] that ``close`` waits for the disk."""
MESSAGE, ARRAY = 700, 180
"""Memory [bytes] that a message and each of its arrays take beside their contents."""


class QueuedBag:
    """A BagWriter behind a queue; one thread puts, no call raises what the disk raises.

    Events: ``recording_delayed`` when the disk rejects, ``recording_dropped`` when messages are
    lost, at once and every 10 s, ``recording_resumed`` behind a gap, ``recording_ended``.
    """

    def __init__(self, bag: BagWriter, name: str, events: Events, patience: float = 0.0) -> None:
        """``patience``: longest time [s] that ``put`` waits for room, once for each gap."""
        self.dropped = 0
        """Calls of ``put`` whose messages are lost."""
        self.fault = ""
        """Why the recording has ended."""
        self._bag, self._name, self._events, self._patience = bag, name, events, patience
        self._queue: deque[tuple[int, Sequence[Message]]] = deque()
        self._size = 0
        self._gap: tuple[int, int, int] | None = None
        self._reported = 0.0
        self._rejected = ""
        self._closing = False
        self._changed = Condition()
        self._thread = Thread(target=self._serve, name="recording", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """What is wrong with the recording at present; "" when nothing is."""
        if self.fault:
            return self.fault
        if self._gap:
            return f"recording: {self._gap[2]} dropped since t = {self._gap[0] * 1e-9:.3f} s"
        return self._rejected and f"recording is delayed: {self._rejected}"

    def values(self) -> dict[str, str]:
        """Size of the queue and number of drops, for diagnostics."""
        return {
            "recording queue [MiB]": f"{self._size / 2**20:.1f} of {LIMIT / 2**20:.0f}",
            "recording dropped": str(self.dropped),
        }

    def put(self, time: int, content: Content) -> bool:
        """Queue ``content`` of ``time`` [ns]; False when it is dropped."""
        if not self._room():
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
        """Write what is queued and finish, for at most ``CLOSING``; may be called twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(CLOSING)
        if self._thread.is_alive():
            self._end(f"the disk does not answer within {CLOSING:g} s")

    def _room(self) -> bool:
        with self._changed:
            if self.fault or self._closing:
                return False
            if self._gap:
                return self._size <= LIMIT / 2
            return self._changed.wait_for(lambda: self._size < LIMIT, self._patience)

    def _drop(self, at: int) -> None:
        first, _, count = self._gap or (at, at, 0)
        self._gap = first, at, count + 1
        self.dropped += 1
        now = time.monotonic()
        if not self.fault and (count == 0 or now - self._reported > REPEAT):
            self._reported = now
            why = self._rejected or "the disk is too slow"
            self._events.report(
                "recording_dropped", f"recording in {self._name}: {count + 1} dropped: {why}"
            )

    def _end_gap(self, at: int) -> Message:
        """What stands in the recording where messages are missing."""
        assert self._gap is not None
        first, last, count = self._gap
        self._gap = None
        missing = {"first": first, "last": last, "dropped": count}
        self._events.report(
            "recording_resumed",
            f"recording in {self._name}: {count} dropped between t = {first * 1e-9:.3f} s"
            f" and {last * 1e-9:.3f} s",
        )
        return Message(GAPS, at, (), json.dumps(missing))

    # --- the thread that writes

    def _serve(self) -> None:
        try:
            while (entry := self._next()) is not None:
                size, messages = entry
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
        except Exception as error:  # whatever disk and library raise: the arm goes on
            self._end(str(error))

    def _next(self) -> tuple[int, Sequence[Message]] | None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue) or self._closing or bool(self.fault))
            return self._queue.popleft() if self._queue and not self.fault else None

    def _flush(self) -> None:
        """Write what is due, and try again while the disk rejects it and nobody closes."""
        while True:
            try:
                self._bag.flush()
            except FileNotFoundError:
                raise
            except OSError as error:
                if not self._rejected:
                    text = f"recording in {self._name} waits for the disk: {error}"
                    self._events.report("recording_delayed", text)
                self._rejected = str(error)
            else:
                self._rejected = ""
                return
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, RETRY):
                    raise OSError(self._rejected)

    def _end(self, why: str) -> None:
        if not self.fault:
            self.fault = f"recording in {self._name} ended: {why}"
            self._events.report("recording_ended", self.fault)
        with self._changed:
            self.dropped += len(self._queue)
            self._queue.clear()
            self._size = 0
            self._changed.notify_all()


def _size(message: Message) -> int:
    """Memory [bytes] that a message takes, about."""
    values = message.values
    if isinstance(values, str):
        return MESSAGE + len(values)
    arrays = list(values.values()) if not hasattr(values, "nbytes") else [values]
    return MESSAGE + sum(ARRAY + array.nbytes for array in arrays)
