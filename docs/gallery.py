"""Gallery of all figures: pictures, their content in numbers, and the page.

    python docs/gallery.py           writes docs/gallery.md and docs/images/gallery
    python docs/gallery.py --check   compares the stored files with the current figures

Content is compared, not bytes: captions, labels, and every curve's points within TOLERANCE.
Each figure contains the digest of its content.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from arm_dynamics.demos import registry
from arm_dynamics.demos.demo_result import DemoResult
from arm_dynamics.demos.writer import KEY, Content, content, digest, file_name, write_figures

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "examples" / "gallery"))

from draw import GALLERY  # noqa: E402

DEMOS = {**registry.DEMOS, **GALLERY}
PAGE = DOCS / "gallery.md"
FOLDER = DOCS / "images" / "gallery"
CONTENT = FOLDER / "content.json"
TOLERANCE = 1e-4
"""Tolerance relative to a curve's largest value, a tenth of a pixel: motions and fits amplify
rounding, which depends on the machine."""
AMPLIFYING = {"/pick": 0.05, "/swing_up": 0.05, "/obstacles": 10.0, "/push": 10.0}
"""Tolerances of figures with contact or plans: redundant contacts and the choice between nearly
equal plans amplify rounding more. Of sampled plans only the tests compare what they reach."""
UNSTABLE = "MPC, delay ignored"
"""Curve and axes of an unstable loop, whose phase depends on rounding: not compared."""
FLOOR = 1e-9
"""Differences of curves below this are rounding."""
HEAD = """# Gallery

The figures of the demonstrations and of `examples/gallery/`. `make gallery` redraws them. A test
computes their curves again and compares them.
"""


def shows() -> dict[str, DemoResult]:
    """Compute all figures."""
    return {name: registry.load_demo(name, DEMOS).show() for name in DEMOS}


def contents(drawn: dict[str, DemoResult]) -> dict[str, Content]:
    """Return the content of each figure by the name of its file."""
    pictures = [picture for show in drawn.values() for picture in show.figures]
    return {file_name(picture): content(picture) for picture in pictures}


def page(drawn: dict[str, DemoResult]) -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for name, show in drawn.items():
        parts.append(f"## {show.title}\n\n```\n{command(name)}\n```\n")
        for picture in show.figures:
            place = f"images/gallery/{file_name(picture)}"
            parts.append(f"![{show.title}]({place})\n\n{picture.caption}\n")
    parts += [_live(name, demo) for name, demo in registry.DEMOS.items() if demo.live]
    return "\n".join(parts)


def command(name: str) -> str:
    """Return the command line that draws the figures ``name``."""
    if name in registry.DEMOS:
        return f"arm-dynamics demo {name}"
    return f"python examples/gallery/draw.py {name}"


def _live(name: str, demo: registry.Demo) -> str:
    """Return the section of a live demonstration, with its screenshots."""
    shots = sorted((DOCS / "images").glob(f"{name}_*.png"))
    seen = "".join(f"![{demo.text}](images/{shot.name})\n\n" for shot in shots)
    return f"## {name}, live\n\n```\narm-dynamics demo {name}\n```\n\n{seen}A page: {demo.text}.\n"


def differences(now: Any, then: Any, where: str = "") -> Iterator[str]:
    """Yield the differences of two contents: texts exactly, numbers beyond TOLERANCE."""
    if isinstance(now, dict) and isinstance(then, dict) and now.keys() == then.keys():
        for key in () if UNSTABLE in (now.get("label"), now.get("title")) else now:
            yield from differences(now[key], then[key], f"{where}/{key}")
    elif _curve(now) and _curve(then) and len(now) == len(then):
        distance = np.abs(np.subtract(now, then)).max()
        amplified = (value for name, value in AMPLIFYING.items() if where.startswith(name))
        tolerance = next(amplified, TOLERANCE)
        if not distance <= tolerance * np.abs(then).max() + FLOOR:
            yield f"{where}: difference = {distance:.3g}"
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for i, pair in enumerate(zip(now, then, strict=True)):
            yield from differences(*pair, f"{where}/{i}")
    elif now != then:
        yield f"{where}: {str(now)[:60]!r} now, {str(then)[:60]!r} there"


def mark(file: Path) -> str:
    """Return the digest of a figure's file; "" without one."""
    with Image.open(file) as image:
        image.load()
        comment = image.info.get(KEY, image.info.get("comment", ""))
        return comment.decode() if isinstance(comment, bytes) else str(comment)


def faults(drawn: dict[str, DemoResult]) -> Iterator[str]:
    """Yield the differences of the stored gallery from the current figures."""
    stored = json.loads(CONTENT.read_text("utf-8"))
    yield from differences(contents(drawn), {name: one["content"] for name, one in stored.items()})
    if PAGE.read_text("utf-8") != page(drawn):
        yield f"{PAGE.name} has a different text"
    there = {file.name for file in FOLDER.iterdir()} - {CONTENT.name}
    if there != set(stored):
        yield f"pictures {sorted(there)}, contents {sorted(stored)}"
    for name in there & set(stored):
        yield from _file_faults(FOLDER / name, stored[name])


def _file_faults(file: Path, stored: dict[str, Any]) -> Iterator[str]:
    if mark(file) != digest(stored["content"]):
        yield f"{file.name} was drawn from a different content"
    if _size(file) != stored["size"]:
        yield f"{file.name} is {_size(file)} pixels large, {stored['size']} are stated"


def _curve(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], float)


def _size(file: Path) -> list[int]:
    with Image.open(file) as image:
        return list(image.size)


def generate() -> None:
    """Write figures, contents and the page."""
    drawn = shows()
    files = {f.name: f for show in drawn.values() for f in write_figures(show, FOLDER).files}
    for file in FOLDER.iterdir():
        if file.name not in {*files, CONTENT.name}:
            file.unlink()
    current = contents(drawn)
    stored = {name: {"size": _size(file), "content": current[name]} for name, file in files.items()}
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in stored.items()]
    CONTENT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    PAGE.write_text(page(drawn), "utf-8")


def main() -> int:
    """Generate or check the gallery; return 1 with one line per difference, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        generate()
        return 0
    problems = list(faults(shows()))
    print("\n".join(problems) or "the gallery is current")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
