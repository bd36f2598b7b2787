"""Layouts of Foxglove and PlotJuggler: the structure that they read, and curves of a recording."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.cli.layout import layouts
from arm_dynamics.cli.main import main
from arm_dynamics.control import build_controller
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.recording import Recorder

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ("five_dof", "puma560", "so101")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return field → {topic: joints} of a recording, and its topics."""
    folder = tmp_path_factory.mktemp("bag") / "run"
    arm = load_arm("five_dof")
    simulation = Simulation(arm)
    loop = ControlLoop(SimulationDriver(arm, simulation), build_controller(arm))
    with Recorder(simulation, folder, loop=loop):
        for _ in range(5):
            loop.step()
    series, sizes = set(), {}
    with AnyReader([folder], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        topics = {connection.topic for connection in reader.connections}
        for connection, _, data in reader.messages():
            if connection.msgtype == "sensor_msgs/msg/JointState":
                message = reader.deserialize(data, connection.msgtype)
                for field in ("position", "velocity", "effort"):
                    values = getattr(message, field)
                    sizes[connection.topic, field] = len(values)
                    series |= {
                        f"{connection.topic}/{joint}/{field}"
                        for joint, _ in zip(message.name, values, strict=False)
                    }
    return series, sizes, topics


def test_plotjuggler_finds_every_curve_in_a_recording(recorded):
    """Names as of ParserROS::parseJointStateMsg, elements as of PlotDocker::restoreSplitter."""
    root = ElementTree.fromstring(
        layouts(load_arm("five_dof"))["five_dof_plotjuggler.xml"].encode()
    )
    (window,) = root.findall("tabbed_widget")
    assert (window.get("parent"), window.get("name")) == ("main_window", "Main Window")
    splitter = window.find("Tab/Container/DockSplitter")
    areas = splitter.findall("DockArea")
    assert int(splitter.get("count")) == len(areas) == len(splitter)
    assert splitter.get("orientation") in {"-", "|"}
    sizes = [float(size) for size in splitter.get("sizes").split(";")]
    assert sum(sizes) == pytest.approx(1.0, abs=1e-5)
    curves = {curve.get("name") for area in areas for curve in area.findall("plot/curve")}
    assert len(curves) == 5 * 6
    assert curves <= recorded[0]


def test_foxglove_finds_every_path_in_a_recording(recorded):
    _, sizes, topics = recorded
    content = json.loads(layouts(load_arm("five_dof"))["five_dof_foxglove.json"])
    assert {*content} == {"configById", "globalVariables", "userNodes", "playbackConfig", "layout"}
    panels, robot = content["configById"], content["configById"]["3D!robot"]
    assert robot["followTf"] == "base_link"
    assert {topic for topic, entry in robot["topics"].items() if entry["visible"]} <= topics
    shown = []
    waiting = [content["layout"]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            shown.append(node)
            continue
        assert node["direction"] in {"row", "column"}
        waiting += [node["first"], node["second"]]
    assert sorted(shown) == sorted(panels)
    for name, panel in panels.items():
        for path in panel.get("paths", ()):
            topic, _, field = path["value"].partition(".")
            field, _, index = field.rstrip("]").partition("[")
            assert name == f"Plot!{field}"
            assert int(index) < sizes[topic, field], path


@pytest.mark.parametrize("name", BUNDLED)
def test_the_layouts_of_bundled_arms_are_what_the_command_writes(name):
    """``arm-dynamics layout ARM --output config/layouts`` writes them again."""
    for file, text in layouts(load_arm(name)).items():
        assert (ROOT / "config/layouts" / file).read_text("utf-8") == text


def test_existing_layouts_are_kept(tmp_path, capsys):
    for code in (0, 2):
        with pytest.raises(SystemExit) as end:
            main(["layout", "so101", "--output", str(tmp_path)])
        assert (end.value.code or 0) == code
    assert "exists already" in capsys.readouterr().err
