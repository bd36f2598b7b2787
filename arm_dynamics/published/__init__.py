"""Reproduction of the published gain search of five_dof, to the published digits.

``compatibility="dynamechs"`` of the forward model takes its time step, ``simulation/dynamechs.py``.
May import batch and all below. Start reading at ``published_search.py``; ``published_gains.py``
holds the published values, their validation and their stability limit.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.published.published_gains import (
        PUBLISHED_I,
        PUBLISHED_P,
        published_loop,
        published_results,
        published_stability_limit,
    )
    from arm_dynamics.published.published_search import improve, search

_MODULES = {
    "PUBLISHED_I": ".published_gains",
    "PUBLISHED_P": ".published_gains",
    "improve": ".published_search",
    "published_loop": ".published_gains",
    "published_results": ".published_gains",
    "published_stability_limit": ".published_gains",
    "search": ".published_search",
}

__all__ = [
    "PUBLISHED_I",
    "PUBLISHED_P",
    "improve",
    "published_loop",
    "published_results",
    "published_stability_limit",
    "search",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
