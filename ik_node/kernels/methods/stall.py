"""When a local method stops."""

from ..compiled import compiled

PATIENCE = 20  # iterations in which a descent must have gained something
AIM = 1e-6  # m and rad: descents go on to here, however coarse the tolerances


@compiled
def keeps_improving(least, iteration, stall_ratio, mark):
    """Return (whether to go on, new mark): every PATIENCE iterations least must be below its mark.

    mark: what the least cost so far has to fall below by the next look, stall_ratio below the last.
    """
    if iteration % PATIENCE != 0:
        return True, mark
    return least <= mark, (1.0 - stall_ratio) * least
