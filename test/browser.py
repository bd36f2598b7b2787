"""A browser's side of the page's connection, without the browser."""

import msgspec
import viser
import zstandard
from websockets.sync.client import connect


class Client:
    """A browser's side of the connection, without the browser."""

    def __init__(self, url, origin=None):
        self._socket = connect(
            url.replace("http", "ws"), subprotocols=[f"viser-v{viser.__version__}"],
            origin=origin, max_size=None, proxy=None,
        )  # fmt: skip
        self.send(
            "ViewerCameraMessage", wxyz=(1, 0, 0, 0), position=(1, 1, 1), fov=1.0, near=0.1,
            far=9.0, image_height=100, image_width=100, look_at=(0, 0, 0), up_direction=(0, 0, 1),
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, kind, **content):
        self._socket.send(msgspec.msgpack.encode({"type": kind, **content}))

    def receive(self, seconds):
        """Return the messages of one window; raise TimeoutError when none comes."""
        raw = self._socket.recv(timeout=seconds)
        size = int.from_bytes(raw[8:16], "little")
        inner = zstandard.ZstdDecompressor().decompress(raw[16 : 16 + size])
        return msgspec.msgpack.decode(inner)["messages"]

    def until_quiet(self, seconds=1.0):
        """Return every message until none came for ``seconds``."""
        messages = []
        for _ in range(200):
            try:
                messages += self.receive(seconds)
            except TimeoutError:
                return messages
        raise AssertionError("the page does not stop sending")

    def press(self, label):
        """Click the button of this label, as soon as it is there; the button's message."""
        buttons = []
        while not buttons:
            parts = (m for m in self.receive(10.0) if m["type"] == "GuiButtonMessage")
            buttons = [m for m in parts if m["props"]["label"] == label]
        self.send("GuiUpdateMessage", uuid=buttons[0]["uuid"], updates={"value": True})
        return buttons[0]
