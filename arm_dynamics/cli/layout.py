"""Write layouts of Foxglove and PlotJuggler for the recordings and the live topics of an arm.

Foxglove shows the robot with its transforms, and plots of positions, velocities and efforts.
PlotJuggler shows the same plots. References and commands are plotted where they are recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from arm_dynamics.cli.arm_options import add_arm, add_options, path_argument, require_new_file
from arm_dynamics.core.files import output_file
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.recording.bag import COMMANDS, REFERENCES, STATES, URDF

PLOTS = {
    "position": {STATES: "", REFERENCES: " reference"},
    "velocity": {STATES: "", REFERENCES: " reference"},
    "effort": {STATES: "", COMMANDS: " command"},
}
"""Topics of each field of JointState, with what the label of a joint ends in."""
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")


def run(arguments: Sequence[str]) -> int:
    """Write both files; return 0."""
    parser = SuggestingParser(prog="arm-dynamics layout", description=__doc__)
    add_arm(parser)
    add_options(parser, only=("lock",))
    text = "folder of the files (default: the current folder)"
    parser.add_argument("--output", type=path_argument, default=Path(), metavar="FOLDER", help=text)
    options = parser.parse_args(arguments)
    arm = load_arm(options.arm, options.lock, tool_frame=options.tool_frame)
    files = layouts(arm)
    for name in files:
        require_new_file("--output", options.output / name)
    for name, content in files.items():
        with output_file(options.output / name) as file:
            file.write_text(content, encoding="utf-8")
        print(options.output / name)
    return 0


def layouts(arm: ArmModel) -> dict[str, str]:
    """Return the layouts of an arm by their file names."""
    return {
        f"{arm.name}_foxglove.json": json.dumps(foxglove(arm), indent=2) + "\n",
        f"{arm.name}_plotjuggler.xml": plotjuggler(arm),
    }


def curves(arm: ArmModel, field: str) -> Iterator[tuple[str, int, str, str]]:
    """Yield topic, index and label of each joint's curves of a field, and the joint's color."""
    for topic, ending in PLOTS[field].items():
        for index, joint in enumerate(arm.joint_names):
            yield topic, index, f"{joint}{ending}", COLORS[index % len(COLORS)]


def foxglove(arm: ArmModel) -> dict[str, object]:
    """Return the layout of Foxglove, which computes the transforms from URDF and joint states."""
    plots = {
        f"Plot!{field}": {
            "foxglovePanelTitle": field,
            "paths": [
                {
                    "value": f"{topic}.{field}[{index}]",
                    "label": label,
                    "color": color,
                    "enabled": True,
                    "timestampMethod": "receiveTime",
                }
                for topic, index, label, color in curves(arm, field)
            ],
            "showLegend": True,
            "legendDisplay": "left",
            "showPlotValuesInLegend": True,
            "showXAxisLabels": True,
            "showYAxisLabels": True,
            "isSynced": True,
            "xAxisVal": "timestamp",
            "sidebarDimension": 180,
        }
        for field in PLOTS
    }
    robot = {
        "foxglovePanelTitle": arm.name,
        "followMode": "follow-none",
        "followTf": arm.base_frame,
        "cameraState": {
            "perspective": True,
            "distance": 2.5,
            "phi": 60,
            "thetaOffset": 45,
            "targetOffset": [0, 0, 0.3],
            "target": [0, 0, 0],
            "targetOrientation": [0, 0, 0, 1],
            "fovy": 45,
            "near": 0.01,
            "far": 100,
        },
        "scene": {"transforms": {"axisScale": 0.3, "showLabel": False}},
        "transforms": {},
        "topics": {URDF: {"visible": True}},
        "layers": {"grid": {"layerId": "foxglove.Grid", "label": "Grid", "visible": True}},
        "publish": {},
        "imageMode": {},
    }
    first, second, third = plots
    right = {
        "direction": "column",
        "first": first,
        "second": {"direction": "column", "first": second, "second": third},
        "splitPercentage": 33,
    }
    return {
        "configById": {"3D!robot": robot, **plots},
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {"direction": "row", "first": "3D!robot", "second": right, "splitPercentage": 45},
    }


def plotjuggler(arm: ArmModel) -> str:
    """Return the layout of PlotJuggler: a tab with one plot of each field."""
    root = ElementTree.Element("root", version="2.3.8")

    def add(parent: ElementTree.Element, tag: str, /, **attributes: str) -> ElementTree.Element:
        return ElementTree.SubElement(parent, tag, attributes)

    window = add(root, "tabbed_widget", parent="main_window", name="Main Window")
    tab = add(window, "Tab", tab_name=arm.name, containers="1")
    sizes = ";".join([f"{1 / len(PLOTS):.6f}"] * len(PLOTS))
    splitter = add(add(tab, "Container"), "DockSplitter", orientation="-", sizes=sizes)
    splitter.set("count", str(len(PLOTS)))
    for field in PLOTS:
        plot = add(add(splitter, "DockArea", name=field), "plot", mode="TimeSeries", style="Lines")
        for topic, index, _, color in curves(arm, field):
            add(plot, "curve", name=f"{topic}/{arm.joint_names[index]}/{field}", color=color)
    add(window, "currentTabIndex", index="0")
    add(root, "use_relative_time_offset", enabled="1")
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
