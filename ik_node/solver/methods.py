# SPDX-License-Identifier: Apache-2.0
"""Local methods: their registry, and those in plain Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A local method.

    text: description with source, for the page on methods. iterations: maximum of one descent; later
    convergence is rare. stall: a descent ends if it gains less than this share of the squared
    error, lm in three steps, the others in kernels.PATIENCE iterations. thorough: (iterations, stall) for
    goals beyond reach, where the error has no zero. starts: of the search for the closest configuration, and
    the same while that misses the position. module: of a method in Python; '' for a kernel. needs: the
    package that it imports, for the error if that is missing. switches: names of its own options, all on by
    default.
    """

    text: str
    iterations: int
    stall: float
    thorough: tuple[int, float]
    starts: tuple[int, int] = (12, 100)
    module: str = ''
    needs: str = ''
    switches: tuple[str, ...] = ()


METHODS = {
    'lm': Method(
        'Levenberg-Marquardt. The damping is proportional to the squared error and raised where a step is '
        'rejected; joints that the gradient pushes over their limit are frozen (Levenberg 1944, Marquardt '
        '1963, Sugihara 2011).',
        30,
        0.1,
        (100, 1e-9),
    ),
    'dls': Method(
        'damped least squares, or damped pseudo-inverse. The same damping, but every step is taken '
        '(Nakamura and Hanafusa 1986, Wampler 1986, Chan and Lawrence 1988).',
        60,
        0.5,
        (200, 1e-6),
    ),
    'transpose': Method(
        "along the Jacobian's transpose, with the step that is best for the linear model (Buss 2004); each "
        'step length is used twice, which ends the zigzag near the target (Raydan and Svaiter 2002).',
        1000,
        0.05,
        (1000, 1e-3),
    ),
    'ccd': Method(
        'cyclic coordinate descent with quaternions, from tip to base, projected onto the joint axes and '
        'clipped to the limits. For thirty sweeps the last joints align the axis and the first move the '
        'point, then every joint serves both (Wang and Chen 1991).',
        1000,
        0.1,
        (1000, 1e-3),
        switches=('hinges', 'limits', 'direction'),
    ),
    'fabrik': Method(
        'forward and backward reaching. Backward from the goal, each joint point is pulled towards the one '
        'behind it; forward from the base, each joint turns within its limits so that the points after it '
        'come closest to these, and the tool axis to its direction (Aristidou and Lasenby 2011).',
        1000,
        0.1,
        (1000, 1e-3),
    ),
    'autodiff': Method(
        'L-BFGS-B of SciPy, a quasi-Newton method with bounds, on a gradient by automatic differentiation: '
        'the forward kinematics written plainly, on dual numbers (Byrd, Lu, Nocedal and Zhu 1995).',
        100,
        0.0,
        (100, 0.0),
        starts=(1, 2),
        module='ik_node.solver.autodiff_method',
        needs='scipy',
    ),
    'scipy': Method(
        '`scipy.optimize.least_squares`, method trf, with bounds and the exact Jacobian: the reference '
        '(Branch, Coleman and Li 1999).',
        100,
        0.0,
        (100, 0.0),
        starts=(3, 3),  # each takes a tenth of a second
        module='ik_node.solver.scipy_method',
        needs='scipy',
    ),
}
