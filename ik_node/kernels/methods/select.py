"""A local method by its number."""

from ..compiled import compiled
from ..layout import METHOD
from .ccd import descend_ccd
from .dls import descend_dls
from .lm import FIRST_DAMPING, descend_lm
from .transpose import descend_transpose

LM, DLS, TRANSPOSE, CCD = 0, 1, 2, 3  # methods of descent


@compiled
def descend(joints, tool, limits, goal, options, q, frames, work):
    """One descent by the method that options name, from q (n,), in place. Returns the iterations."""
    method = int(options[METHOD])
    if method == DLS:
        return descend_dls(joints, tool, limits, goal, options, q, frames, work)
    if method == TRANSPOSE:
        return descend_transpose(joints, tool, limits, goal, options, q, frames, work)
    if method == CCD:
        return descend_ccd(joints, tool, limits, goal, options, q, frames, work)
    return descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
