"""Sphinx configuration of the documentation: ``make docs`` builds it into build/docs.

Set ARM_DYNAMICS_REPOSITORY_URL to the address of the repository's files, for example
``<host>/<owner>/arm_dynamics/blob/main``, to turn references to files outside of docs/ into
links. Without it they are plain text.
"""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
from package_face import PACKAGES, is_missing, page_name

project = "arm_dynamics"
author = "arm_dynamics maintainers"
release = version = installed_version("arm_dynamics")
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "package_face",
    "repository_links",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["extensions/**", *(f"{page_name(p)}.md" for p in PACKAGES if is_missing(p))]

repository_url = os.environ.get("ARM_DYNAMICS_REPOSITORY_URL", "")
repository_pages = {
    "project/architecture": "ARCHITECTURE.md",
    "project/changelog": "CHANGELOG.md",
    "project/contributing": "CONTRIBUTING.md",
}

myst_heading_anchors = 4

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
aliases = ("ArrayLike", "Vector", "Matrix", "FloatArray", "IntArray", "BoolArray")
autodoc_type_aliases = {name: name for name in aliases}
maximum_signature_line_length = 80
autosummary_generate = False  # numpydoc loads autosummary, which is not used
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"arm_dynamics {release}"
html_show_copyright = False
