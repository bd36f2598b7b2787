"""Gallery of all demonstrations: pictures, their content as numbers, and the page.

    python docs/gallery.py           write docs/gallery.md and docs/images/gallery
    python docs/gallery.py --check   compare the stored gallery with a new computation

The content is compared, not the bytes: captions, labels, and curve points within TOLERANCE. Each
picture contains the digest of its content.
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
PAGE = DOCS / "gallery.md"
FOLDER = DOCS / "images" / "gallery"
CONTENT = FOLDER / "content.json"
TOLERANCE = 1e-6
"""Fraction of a curve's maximum: rounding differs between machines, and motion amplifies it."""
FLOOR = 1e-9
"""Differences of curves below this are rounding."""
HEAD = """# Gallery

Figures of all demonstrations. `make gallery` draws all pictures; a test computes their curves and
compares them with the stored ones.
"""


def shows() -> dict[str, DemoResult]:
    """Compute the figures of all demonstrations."""
    return {name: registry.load_demo(name).show() for name in registry.DEMOS}


def contents(drawn: dict[str, DemoResult]) -> dict[str, Content]:
    """Return the content of each picture by file name."""
    pictures = [picture for show in drawn.values() for picture in show.pictures]
    return {file_name(picture): content(picture) for picture in pictures}


def page(drawn: dict[str, DemoResult]) -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for name, show in drawn.items():
        parts.append(f"## {show.title}\n\n```\narm-dynamics demo {name}\n```\n")
        for picture in show.pictures:
            place = f"images/gallery/{file_name(picture)}"
            parts.append(f"![{show.title}]({place})\n\n{picture.caption}\n")
    parts += [_live(name, demo) for name, demo in registry.DEMOS.items() if demo.live]
    return "\n".join(parts)


def _live(name: str, demo: registry.Demo) -> str:
    """Return the section of a live demonstration, with its screenshots."""
    shots = sorted((DOCS / "images").glob(f"{name}_*.png"))
    seen = "".join(f"![{demo.text}](images/{shot.name})\n\n" for shot in shots)
    return f"## {name}, live\n\n```\narm-dynamics demo {name}\n```\n\n{seen}A page: {demo.text}.\n"


def differences(now: Any, then: Any, where: str = "") -> Iterator[str]:
    """Yield the differences of two contents: any of words, above TOLERANCE of numbers."""
    if isinstance(now, dict) and isinstance(then, dict) and now.keys() == then.keys():
        for key in now:
            yield from differences(now[key], then[key], f"{where}/{key}")
    elif _curve(now) and _curve(then) and len(now) == len(then):
        difference = np.abs(np.subtract(now, then)).max()
        if not difference <= TOLERANCE * np.abs(then).max() + FLOOR:
            yield f"{where}: difference = {difference:.3g}"
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for i, pair in enumerate(zip(now, then, strict=True)):
            yield from differences(*pair, f"{where}/{i}")
    elif now != then:
        yield f"{where}: {str(now)[:60]!r} computed, {str(then)[:60]!r} stored"


def mark(file: Path) -> str:
    """Return the digest in a picture; "" without one."""
    with Image.open(file) as image:
        image.load()
        comment = image.info.get(KEY, image.info.get("comment", ""))
        return comment.decode() if isinstance(comment, bytes) else str(comment)


def faults(drawn: dict[str, DemoResult]) -> Iterator[str]:
    """Yield the differences between the stored gallery and a new computation."""
    stored = json.loads(CONTENT.read_text("utf-8"))
    yield from differences(contents(drawn), {name: one["content"] for name, one in stored.items()})
    if PAGE.read_text("utf-8") != page(drawn):
        yield f"{PAGE.name}: the text differs"
    there = {file.name for file in FOLDER.iterdir()} - {CONTENT.name}
    if there != set(stored):
        yield f"pictures = {sorted(there)}; expected {sorted(stored)}"
    for name in there & set(stored):
        yield from _file_faults(FOLDER / name, stored[name])


def _file_faults(file: Path, stored: dict[str, Any]) -> Iterator[str]:
    if mark(file) != digest(stored["content"]):
        yield f"{file.name}: drawn from other content"
    if _size(file) != stored["size"]:
        yield f"{file.name}: size = {_size(file)} pixels; expected {stored['size']}"


def _curve(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], float)


def _size(file: Path) -> list[int]:
    with Image.open(file) as image:
        return list(image.size)


def generate() -> None:
    """Write pictures, contents and the page."""
    drawn = shows()
    files = {f.name: f for show in drawn.values() for f in write_figures(show, FOLDER).files}
    for file in FOLDER.iterdir():
        if file.name not in {*files, CONTENT.name}:
            file.unlink()
    now = contents(drawn)
    stored = {name: {"size": _size(file), "content": now[name]} for name, file in files.items()}
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in stored.items()]
    CONTENT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    PAGE.write_text(page(drawn), "utf-8")


def main() -> int:
    """Write or check the gallery; exit code 1 and one line for each difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        generate()
        return 0
    found = list(faults(shows()))
    print("\n".join(found) or "the gallery is current")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
