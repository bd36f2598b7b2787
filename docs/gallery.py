"""The gallery of all demonstrations: pictures, what they say in numbers, and the page.

    python docs/gallery.py           writes docs/gallery.md and docs/images/gallery
    python docs/gallery.py --check   compares what is there with what would be drawn now

Content is compared, not bytes: captions, labels, and every curve's points within TOLERANCE.
Each picture carries the digest of the content that it was drawn from.
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
"""Of a curve's largest value: rounding differs between machines, and motion amplifies it."""
FLOOR = 1e-9
"""Differences of curves below this are rounding."""
HEAD = """# Gallery

Every system as its demonstration shows it. `make gallery` draws all pictures anew; a test computes
their curves again and compares.
"""


def shows() -> dict[str, DemoResult]:
    """Every demonstration's figures, computed now."""
    return {name: registry.load_demo(name).show() for name in registry.DEMOS}


def contents(drawn: dict[str, DemoResult]) -> dict[str, Content]:
    """What each picture says, by the name of its file."""
    pictures = [picture for show in drawn.values() for picture in show.pictures]
    return {file_name(picture): content(picture) for picture in pictures}


def page(drawn: dict[str, DemoResult]) -> str:
    """The page's text."""
    parts = [HEAD]
    for name, show in drawn.items():
        parts.append(f"## {show.title}\n\n```\narm-dynamics demo {name}\n```\n")
        for picture in show.pictures:
            place = f"images/gallery/{file_name(picture)}"
            parts.append(f"![{show.title}]({place})\n\n{picture.caption}\n")
    parts += [_live(name, demo) for name, demo in registry.DEMOS.items() if demo.live]
    return "\n".join(parts)


def _live(name: str, demo: registry.Demo) -> str:
    """What the page says of a live demonstration, with its screenshot where there is one."""
    shots = sorted((DOCS / "images").glob(f"{name}_*.png"))
    seen = "".join(f"![{demo.text}](images/{shot.name})\n\n" for shot in shots)
    return f"## {name}, live\n\n```\narm-dynamics demo {name}\n```\n\n{seen}A page: {demo.text}.\n"


def differences(now: Any, then: Any, where: str = "") -> Iterator[str]:
    """Where two contents differ: words exactly, numbers by more than TOLERANCE."""
    if isinstance(now, dict) and isinstance(then, dict) and now.keys() == then.keys():
        for key in now:
            yield from differences(now[key], then[key], f"{where}/{key}")
    elif _curve(now) and _curve(then) and len(now) == len(then):
        apart = np.abs(np.subtract(now, then)).max()
        if not apart <= TOLERANCE * np.abs(then).max() + FLOOR:
            yield f"{where}: apart by {apart:.3g}"
    elif isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        for i, pair in enumerate(zip(now, then, strict=True)):
            yield from differences(*pair, f"{where}/{i}")
    elif now != then:
        yield f"{where}: {str(now)[:60]!r} now, {str(then)[:60]!r} there"


def mark(file: Path) -> str:
    """The digest that a picture carries; "" when it has none."""
    with Image.open(file) as image:
        image.load()
        comment = image.info.get(KEY, image.info.get("comment", ""))
        return comment.decode() if isinstance(comment, bytes) else str(comment)


def faults(drawn: dict[str, DemoResult]) -> Iterator[str]:
    """Everything in which the gallery is not what would be drawn now."""
    stored = json.loads(CONTENT.read_text("utf-8"))
    yield from differences(contents(drawn), {name: one["says"] for name, one in stored.items()})
    if PAGE.read_text("utf-8") != page(drawn):
        yield f"{PAGE.name} is another text"
    there = {file.name for file in FOLDER.iterdir()} - {CONTENT.name}
    if there != set(stored):
        yield f"pictures {sorted(there)}, contents {sorted(stored)}"
    for name in there & set(stored):
        yield from _file_faults(FOLDER / name, stored[name])


def _file_faults(file: Path, stored: dict[str, Any]) -> Iterator[str]:
    if mark(file) != digest(stored["says"]):
        yield f"{file.name} was drawn from another content"
    if _size(file) != stored["size"]:
        yield f"{file.name} is {_size(file)} pixels large, {stored['size']} are stated"


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
    said = contents(drawn)
    stored = {name: {"size": _size(file), "says": said[name]} for name, file in files.items()}
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in stored.items()]
    CONTENT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    PAGE.write_text(page(drawn), "utf-8")


def main() -> int:
    """Generate, or check: exit code 1 and one line a fault."""
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
