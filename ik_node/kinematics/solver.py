"""IkSolver: the pipeline from goal to solution."""


class IkSolver:
    """Solves goals for one arm."""
