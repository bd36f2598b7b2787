"""The committed gallery is complete, and its comparison finds differences.

test_demos compares it with the output of the demonstrations.
"""

import copy
import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from arm_dynamics.demos import registry

ROOT = Path(__file__).parents[2]
GALLERY = runpy.run_path(str(ROOT / "docs" / "gallery.py"))
FOLDER = GALLERY["FOLDER"]
STORED = json.loads(GALLERY["CONTENT"].read_text("utf-8"))


def differences(now, then):
    return list(GALLERY["differences"](now, then))


def test_the_page_shows_every_figure_and_command():
    page = GALLERY["PAGE"].read_text("utf-8")
    pictures = {Path(target).name for target in re.findall(r"\]\(images/gallery/(.*?)\)", page)}
    assert pictures == set(STORED)
    for name in registry.DEMOS:
        assert f"arm-dynamics demo {name}\n" in page
    for name in GALLERY["GALLERY"]:
        assert f"python examples/gallery/draw.py {name}\n" in page


@pytest.mark.figures
@pytest.mark.parametrize("name", STORED)
def test_figures_are_valid_and_not_blank(name):
    with Image.open(FOLDER / name) as image:
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            image.load()
        shades = np.asarray(image.convert("L"))
    assert list(shades.shape[::-1]) == STORED[name]["size"]
    assert 0.01 < (shades < 200).mean() < 0.5


def test_pictures_are_small():
    sizes = {file.name: file.stat().st_size for file in FOLDER.iterdir()}
    assert sum(sizes.values()) < 6.2e6, sizes
    assert all(size < 1.5e6 for name, size in sizes.items() if name.endswith(".gif"))


def curve():
    return {"axes": [{"x": "time [s]", "lines": [{"label": "J1", "y": [0.0, 1.0, -4.0]}]}]}


def test_rounding_errors_are_not_differences():
    other = copy.deepcopy(curve())
    other["axes"][0]["lines"][0]["y"] = [1e-7, 1.0 + 1e-7, -4.0 - 1e-7]
    assert differences(curve(), other) == []


@pytest.mark.parametrize("y", [[0.0, 1.0 + 1e-3, -4.0], [0.0, 1.0], [0.0, float("nan"), -4.0], []])
def test_a_different_curve_is_found(y):
    other = copy.deepcopy(curve())
    other["axes"][0]["lines"][0]["y"] = y
    (found,) = differences(other, curve())
    assert found.startswith("/axes/0/lines/0/y")


def test_a_different_word_or_line_is_found():
    other = copy.deepcopy(curve())
    other["axes"][0]["x"] = "time [ms]"
    (found,) = differences(other, curve())
    assert "time [ms]" in found
    other = copy.deepcopy(curve())
    other["axes"][0]["lines"].append({"label": "J2", "y": [0.0]})
    assert len(differences(other, curve())) == 1


def test_a_figure_of_different_content_is_found(tmp_path):
    file = tmp_path / "picture.png"
    Image.new("RGB", (4, 3)).save(file)
    stored = {"size": [4, 4], "content": {}}
    faults = list(GALLERY["_file_faults"](file, stored))
    assert len(faults) == 2
