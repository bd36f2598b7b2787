"""The path of the tool over the last seconds: a line that fades with age."""

from __future__ import annotations

from collections import deque
from math import dist
from typing import Any

import numpy as np

from arm_dynamics.viewer.history import RATE, WINDOW, History, Sample
from arm_dynamics.viewer.pose import Triple
from arm_dynamics.viewer.skeleton import Link, tip

NEW, OLD = np.array([255, 140, 0]), np.array([48, 54, 64])
GAMMA = 2.2  # browsers take the colours of lines as linear light
MAX_POINTS = int(WINDOW * RATE) + 1


class ToolTrace:
    """Line segments through the tool's positions, at least ``spacing`` [m] apart."""

    def __init__(self, scene: Any, chain: tuple[Link, ...], spacing: float) -> None:
        self._chain, self._spacing = chain, spacing
        self._points: deque[tuple[float, Triple]] = deque(maxlen=MAX_POINTS)
        self._seen, self._since = -np.inf, -np.inf
        none = np.zeros((1, 2, 3))
        self._line = scene.add_line_segments(
            "/trace", none, none.astype(np.uint8), thickness=3.5, thickness_units="screen",
            visible=False,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._points)

    def clear(self) -> None:
        """Forget the path so far."""
        self._since = self._seen
        self._points.clear()

    def extend(self, history: History) -> None:
        """Append the samples of ``history`` that are new, and drop the old."""
        samples = list(history)
        if not samples:
            return
        now = samples[-1].time
        if now < self._seen:
            self._seen = self._since = -np.inf
            self._points.clear()
        for sample in samples:
            if sample.time > max(self._seen, self._since):
                self._append(sample)
        self._seen = now
        while self._points and self._points[0][0] < now - WINDOW:
            self._points.popleft()

    def draw(self) -> None:
        """Send the line when it changed."""
        if len(self._points) < 2:
            if self._line.visible:
                self._line.visible = False
            return
        path = np.array([point for _, point in self._points], dtype=np.float32)
        age = np.linspace(0, 1, len(path))[:, None] ** 0.7
        shade = ((OLD + (NEW - OLD) * age) / 255) ** GAMMA * 255
        shade = shade.astype(np.uint8)
        self._line.points = np.stack([path[:-1], path[1:]], axis=1)
        self._line.colors = np.stack([shade[:-1], shade[1:]], axis=1)
        if not self._line.visible:
            self._line.visible = True

    def _append(self, sample: Sample) -> None:
        point = tip(self._chain, sample.q.tolist())
        if not self._points or dist(point, self._points[-1][1]) >= self._spacing:
            self._points.append((sample.time, point))
