"""Pages and links that lead out of docs/ into the rest of the repository.

``repository_pages`` maps a page to the file at the repository's root that holds its text.
In every page, a link to a page of the site stays a link. A link to any other file of the
repository becomes a link below ``repository_url`` if that is set, and plain text otherwise.
A link to a file that does not exist is a warning.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
LOG = logging.getLogger(__name__)
LINK = re.compile(
    r"(?P<code>^```.*?^```|`[^`\n]+`)|(?P<image>!?)\[(?P<text>(?:[^\[\]]|`[^`]*`)*)\]"
    r"\((?P<target>[^()\s:#]+)(?P<anchor>#[\w-]*)?\)",
    re.MULTILINE | re.DOTALL,
)


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Read ``docname`` from its repository file, and rewrite its links for the site."""
    pages = app.config.repository_pages
    page = DOCS / f"{docname}.md"
    origin = page
    if docname in pages:
        origin = ROOT / pages[docname]
        app.env.note_dependency(str(origin))
        source[0] = origin.read_text("utf-8")
    homes = {(ROOT / file).resolve(): DOCS / f"{name}.md" for name, file in pages.items()}

    def link(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        target = (origin.parent / found["target"]).resolve()
        target = homes.get(target, target)
        anchor = found["anchor"] or ""
        if not target.exists():
            LOG.warning("link target %s does not exist", found["target"], location=docname)
            return found["text"]
        if target.is_relative_to(DOCS):
            place = Path(os.path.relpath(target, page.parent)).as_posix()
            return f"{found['image']}[{found['text']}]({place}{anchor})"
        if not app.config.repository_url:
            return found["text"]
        place = target.relative_to(ROOT).as_posix()
        return f"[{found['text']}]({app.config.repository_url.rstrip('/')}/{place}{anchor})"

    source[0] = LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the two settings and the hook."""
    app.add_config_value("repository_pages", {}, "env", dict)
    app.add_config_value("repository_url", "", "env", str)
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True}
