"""WebSocket client of a viewer page, without a browser."""

import time

import msgspec
import viser
import zstandard
from websockets.sync.client import connect


class Client:
    """Browser side of the WebSocket connection."""

    def __init__(self, url, origin=None):
        self._url = url
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
        """Click the button of this label as soon as it exists; return the button's message."""
        buttons = []
        while not buttons:
            parts = (m for m in self.receive(10.0) if m["type"] == "GuiButtonMessage")
            buttons = [m for m in parts if m["props"]["label"] == label]
        self.send("GuiUpdateMessage", uuid=buttons[0]["uuid"], updates={"value": True})
        return buttons[0]


class Panel(Client):
    """Controls of a page by label, updated by the messages of the page."""

    def __init__(self, url, origin=None):
        super().__init__(url, origin)
        self._parts = {}
        self.nodes = {}
        """Messages that created the nodes of the scene, by name."""
        self._received = time.monotonic()

    def poll(self, seconds=0.2):
        """Receive one window of messages and apply them."""
        try:
            messages = self.receive(seconds)
        except TimeoutError:
            return
        self._received = time.monotonic()
        for message in messages:
            uuid = message.get("uuid")
            if message["type"] == "GuiUpdateMessage" and uuid in self._parts:
                part = self._parts[uuid]
                for name, value in message["updates"].items():
                    (part if name == "value" else part["props"])[name] = value
            elif message["type"] == "GuiRemoveMessage":
                self._parts.pop(uuid, None)
            elif message["type"].startswith("Gui") and "props" in message:
                self._parts[uuid] = message
            elif "props" in message and "name" in message:
                self.nodes[message["name"]] = message
            elif message["type"] in ("SetPositionMessage", "SetOrientationMessage"):
                kept = ("position", "wxyz")
                changes = {key: message[key] for key in kept if key in message}
                self.nodes.get(message["name"], {}).update(changes)

    def wait_for(self, condition, otherwise, seconds=60.0):
        """Return the first true result of ``condition``."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            age = f"last message {time.monotonic() - self._received:.0f} s ago"
            assert time.monotonic() < end, f"{otherwise}; {age}; on the page: {self.text}"
            self.poll()
        return found

    @property
    def text(self):
        """HTML of all panel parts."""
        parts = self._parts.values()
        return "\n".join(p["props"]["content"] for p in parts if p["type"] == "GuiHtmlMessage")

    def named(self, label, kind=""):
        """Return the controls with this label."""
        parts = self._parts.values()
        return [p for p in parts if p["props"].get("label") == label and kind in p["type"]]

    @property
    def offered(self):
        """Names of the buttons in button groups."""
        groups = [p for p in self._parts.values() if p["type"] == "GuiButtonGroupMessage"]
        return [name for group in groups for name in group["props"]["options"]]

    @property
    def sliders(self):
        """Value of every slider by label."""
        parts = self._parts.values()
        return {p["props"]["label"]: p["value"] for p in parts if "Slider" in p["type"]}

    def update(self, part, **values):
        """Send a control's values, as a browser does."""
        self.send("GuiUpdateMessage", uuid=part["uuid"], updates=values)
        part |= {name: value for name, value in values.items() if name in part}

    def set(self, label, value):
        """Move a slider, or fill a field, of this label; the last one if several exist."""
        part = self.wait_for(lambda: [p for p in self.named(label) if "value" in p], label)[-1]
        self.update(part, value=value)

    def push(self, label):
        """Press a button, single or in a group, as soon as it is visible."""

        def find():
            rows = [p for p in self._parts.values() if label in p["props"].get("options", ())]
            return rows or [p for p in self.named(label, "Button") if p["props"]["visible"]]

        part = self.wait_for(find, f"no button {label}")[-1]
        self.update(part, value=True if part["type"] == "GuiButtonMessage" else label)

    def drag_handle(self, name, *positions):
        """Drag a handle of the scene through ``positions`` (3,) [m] and release it."""
        node = self.wait_for(lambda: self.nodes.get(name), f"no handle {name}")
        about = {"name": name, "owner": node["owner"]}
        self.send("TransformControlsDragStartMessage", **about)
        for position in positions:
            self.send(
                "TransformControlsUpdateMessage", **about,
                wxyz=(1.0, 0.0, 0.0, 0.0), position=tuple(map(float, position)),
            )  # fmt: skip
        self.send("TransformControlsDragEndMessage", **about)

    def drag_node(self, name, phase, start, end):
        """Send one phase of a drag of a shape from ``start`` to ``end`` (3,) [m]."""
        node = self.wait_for(lambda: self.nodes.get(name), f"no shape {name}")
        self.send(
            "SceneNodeDragMessage", name=name, owner=node["owner"], phase=phase, button="left",
            start_position=tuple(map(float, start)), end_position=tuple(map(float, end)),
            instance_index=None, start_screen_pos=(0.5, 0.5), end_screen_pos=(0.5, 0.5),
            modifier=None,
        )  # fmt: skip
