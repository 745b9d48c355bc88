"""Every compiled kernel of ik_node, and nothing else.

All kernels stand in this one file because numba's cache does not notice a change of a callee in
another file. They know floats and arrays only: plain loops, output arguments, no allocation inside
iterations, never fastmath (it breaks isnan).

Common arguments, built by Arm:
joints (m, 10)  one row per movable joint of the chain, mimic joints included: axis (3) and offset (3)
                from the joint before, both at the zero pose in the base frame, then 1 if prismatic,
                index of the variable that drives it, and ratio and shift of
                value = ratio * q[index] + shift (1 and 0 but for mimic joints).
tool (9,)       offset (3) of the tool point from the last joint, tool axis (3) and lateral axis (3),
                at the zero pose in the base frame.
limits (2, n)   lower and upper, infinite where a joint is continuous.
goal (9,)       position, direction, lateral in the base frame; NaN where not asked for.
frames          (2 m + 3, 3): the m axes, the m joint points, tool point, tool axis, lateral axis,
                all in the base frame.
settings (7,)   position tolerance [m], direction tolerance [chord], weight [m/rad], iterations per
                descent, stall ratio, temperatures per cycle, cooling factor.
"""

from math import atan2, cos, inf, isfinite, isnan, pi, sin, sqrt

import numpy as np
from numba import njit

compiled = njit(cache=True, error_model='numpy', nogil=True)


@compiled
def forward(joints, tool, q, frames):
    """Forward kinematics: write frames at q (n,). Product of exponentials, base to tip."""
    m = joints.shape[0]
    r00, r01, r02 = 1.0, 0.0, 0.0
    r10, r11, r12 = 0.0, 1.0, 0.0
    r20, r21, r22 = 0.0, 0.0, 1.0
    px, py, pz = 0.0, 0.0, 0.0
    for i in range(m):
        x, y, z = joints[i, 3], joints[i, 4], joints[i, 5]
        px += r00 * x + r01 * y + r02 * z
        py += r10 * x + r11 * y + r12 * z
        pz += r20 * x + r21 * y + r22 * z
        x, y, z = joints[i, 0], joints[i, 1], joints[i, 2]
        ax = r00 * x + r01 * y + r02 * z
        ay = r10 * x + r11 * y + r12 * z
        az = r20 * x + r21 * y + r22 * z
        value = joints[i, 8] * q[int(joints[i, 7])] + joints[i, 9]
        if joints[i, 6] != 0.0:
            px += ax * value
            py += ay * value
            pz += az * value
        else:
            # R <- Rot(a, value) R column by column would cost more: turn on the right instead.
            s = sin(value)
            c = cos(value)
            v = 1.0 - c
            xs, ys, zs = x * s, y * s, z * s
            xv, yv, zv = x * v, y * v, z * v
            m00, m01, m02 = c + x * xv, x * yv - zs, x * zv + ys
            m10, m11, m12 = x * yv + zs, c + y * yv, y * zv - xs
            m20, m21, m22 = x * zv - ys, y * zv + xs, c + z * zv
            t0 = r00 * m00 + r01 * m10 + r02 * m20
            t1 = r00 * m01 + r01 * m11 + r02 * m21
            r02 = r00 * m02 + r01 * m12 + r02 * m22
            r00, r01 = t0, t1
            t0 = r10 * m00 + r11 * m10 + r12 * m20
            t1 = r10 * m01 + r11 * m11 + r12 * m21
            r12 = r10 * m02 + r11 * m12 + r12 * m22
            r10, r11 = t0, t1
            t0 = r20 * m00 + r21 * m10 + r22 * m20
            t1 = r20 * m01 + r21 * m11 + r22 * m21
            r22 = r20 * m02 + r21 * m12 + r22 * m22
            r20, r21 = t0, t1
        frames[i, 0], frames[i, 1], frames[i, 2] = ax, ay, az
        frames[m + i, 0], frames[m + i, 1], frames[m + i, 2] = px, py, pz
    frames[2 * m, 0] = px + r00 * tool[0] + r01 * tool[1] + r02 * tool[2]
    frames[2 * m, 1] = py + r10 * tool[0] + r11 * tool[1] + r12 * tool[2]
    frames[2 * m, 2] = pz + r20 * tool[0] + r21 * tool[1] + r22 * tool[2]
    for k in range(2):
        x, y, z = tool[3 * k + 3], tool[3 * k + 4], tool[3 * k + 5]
        frames[2 * m + 1 + k, 0] = r00 * x + r01 * y + r02 * z
        frames[2 * m + 1 + k, 1] = r10 * x + r11 * y + r12 * z
        frames[2 * m + 1 + k, 2] = r20 * x + r21 * y + r22 * z


@compiled
def jacobian(joints, frames, out):
    """Write d(tool point, tool axis)/dq into out (n, 6), a row per variable, from frames at q."""
    m = joints.shape[0]
    out[:, :] = 0.0
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    for i in range(m):
        j = int(joints[i, 7])
        ratio = joints[i, 8]
        ax, ay, az = ratio * frames[i, 0], ratio * frames[i, 1], ratio * frames[i, 2]
        if joints[i, 6] != 0.0:
            out[j, 0] += ax
            out[j, 1] += ay
            out[j, 2] += az
        else:
            x, y, z = px - frames[m + i, 0], py - frames[m + i, 1], pz - frames[m + i, 2]
            out[j, 0] += ay * z - az * y
            out[j, 1] += az * x - ax * z
            out[j, 2] += ax * y - ay * x
            out[j, 3] += ay * dz - az * dy
            out[j, 4] += az * dx - ax * dz
            out[j, 5] += ax * dy - ay * dx


@compiled
def angle_between(a, b):
    """Angle [rad] between two unit vectors (3,), exact near 0 and near pi (Kahan)."""
    sx, sy, sz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    tx, ty, tz = a[0] + b[0], a[1] + b[1], a[2] + b[2]
    return 2.0 * atan2(sqrt(sx * sx + sy * sy + sz * sz), sqrt(tx * tx + ty * ty + tz * tz))


@compiled
def goal_errors(joints, frames, goal):
    """Return (position error [m], direction error [rad]; 0 if no direction is asked for)."""
    m = joints.shape[0]
    x, y, z = frames[2 * m, 0] - goal[0], frames[2 * m, 1] - goal[1], frames[2 * m, 2] - goal[2]
    position_error = sqrt(x * x + y * y + z * z)
    if isnan(goal[3]):
        return position_error, 0.0
    return position_error, angle_between(frames[2 * m + 1], goal[3:6])


@compiled
def squared_errors(joints, frames, goal):
    """Return (squared position error [m^2], squared chord between the directions)."""
    m = joints.shape[0]
    x, y, z = goal[0] - frames[2 * m, 0], goal[1] - frames[2 * m, 1], goal[2] - frames[2 * m, 2]
    position = x * x + y * y + z * z
    if isnan(goal[3]):
        return position, 0.0
    x, y, z = goal[3] - frames[2 * m + 1, 0], goal[4] - frames[2 * m + 1, 1], goal[5] - frames[2 * m + 1, 2]
    return position, x * x + y * y + z * z


@compiled
def clip(q, limits):
    """Bring q (n,) inside the limits, in place."""
    for i in range(q.shape[0]):
        if q[i] < limits[0, i]:
            q[i] = limits[0, i]
        elif q[i] > limits[1, i]:
            q[i] = limits[1, i]


# --- descents --------------------------------------------------------------------------------------


@compiled
def normal_equations(joints, frames, goal, weight, jac, hessian, gradient):
    """Gauss-Newton normal equations of |position error|^2 + weight^2 |direction chord|^2.

    Writes hessian (n, n), lower half, and gradient (n,), the right-hand side.
    weight [m]: metres of position error that count as much as one radian.
    """
    m = joints.shape[0]
    n = gradient.shape[0]
    jacobian(joints, frames, jac)
    ex, ey, ez = goal[0] - frames[2 * m, 0], goal[1] - frames[2 * m, 1], goal[2] - frames[2 * m, 2]
    if isnan(goal[3]):
        w, fx, fy, fz = 0.0, 0.0, 0.0, 0.0
    else:
        w = weight
        fx = w * (goal[3] - frames[2 * m + 1, 0])
        fy = w * (goal[4] - frames[2 * m + 1, 1])
        fz = w * (goal[5] - frames[2 * m + 1, 2])
    for i in range(n):
        a, b, c = jac[i, 0], jac[i, 1], jac[i, 2]
        d, e, f = w * jac[i, 3], w * jac[i, 4], w * jac[i, 5]
        jac[i, 3], jac[i, 4], jac[i, 5] = d, e, f
        gradient[i] = a * ex + b * ey + c * ez + d * fx + e * fy + f * fz
        for j in range(i + 1):
            hessian[i, j] = (
                a * jac[j, 0] + b * jac[j, 1] + c * jac[j, 2] + d * jac[j, 3] + e * jac[j, 4] + f * jac[j, 5]
            )


@compiled
def damped_step(hessian, gradient, free, damping, floor, factor, step):
    """Solve (H + damping (diag H + floor)) step = gradient by Cholesky, frozen joints left out."""
    n = gradient.shape[0]
    for i in range(n):
        if free[i] == 0.0:
            step[i] = 0.0
            continue
        total = gradient[i]
        for j in range(i):
            if free[j] == 0.0:
                continue
            s = hessian[i, j]
            for k in range(j):
                if free[k] != 0.0:
                    s -= factor[i, k] * factor[j, k]
            s *= factor[j, j]
            factor[i, j] = s
            total -= s * step[j]
        s = hessian[i, i] + damping * (hessian[i, i] + floor)
        for k in range(i):
            if free[k] != 0.0:
                s -= factor[i, k] * factor[i, k]
        # The diagonal holds the inverse: one division per row instead of one per entry.
        factor[i, i] = 1.0 / sqrt(s) if s > 1e-300 else 1e150
        step[i] = total * factor[i, i]
    for i in range(n - 1, -1, -1):
        if free[i] == 0.0:
            continue
        s = step[i]
        for k in range(i + 1, n):
            if free[k] != 0.0:
                s -= factor[k, i] * step[k]
        step[i] = s * factor[i, i]


@compiled
def descend_lm(joints, tool, limits, goal, settings, q, frames, work):
    """Bounded Levenberg-Marquardt descent from q (n,), in place; frames are left at the returned q.

    Joints at a limit that the gradient pushes further out are frozen for the step; the step is
    clipped to the limits. Ends at both tolerances, at a local minimum or after the iterations
    allowed. Returns the number of iterations.
    """
    n = q.shape[0]
    hessian, factor = work[:n, :n], work[n : 2 * n, :n]
    jac = work[2 * n : 3 * n, :6]
    gradient, step, free, trial = (
        work[3 * n, :n],
        work[3 * n + 1, :n],
        work[3 * n + 2, :n],
        work[3 * n + 3, :n],
    )
    position_goal = settings[0] * settings[0]
    direction_goal = settings[1] * settings[1]
    weight = settings[2]
    most = int(settings[3])
    floor = 1e-3 * weight * weight
    damping = 1e-2
    stalled = 0
    clip(q, limits)
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    cost = position + weight * weight * direction
    for iteration in range(most):
        if position <= position_goal and direction <= direction_goal:
            return iteration
        normal_equations(joints, frames, goal, weight, jac, hessian, gradient)
        for i in range(n):
            outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (
                q[i] >= limits[1, i] and gradient[i] > 0.0
            )
            free[i] = 0.0 if outward else 1.0
        better = False
        for _ in range(8):
            damped_step(hessian, gradient, free, damping, floor, factor, step)
            for i in range(n):
                trial[i] = q[i] + step[i]
            clip(trial, limits)
            forward(joints, tool, trial, frames)
            position, direction = squared_errors(joints, frames, goal)
            new = position + weight * weight * direction
            if new < cost:
                better = True
                break
            damping *= 8.0
        if not better:
            forward(joints, tool, q, frames)
            return iteration + 1
        stalled = stalled + 1 if cost - new < settings[4] * cost else 0
        cost = new
        for i in range(n):
            q[i] = trial[i]
        damping = max(0.1 * damping, 1e-9)
        if stalled == 3:
            return iteration + 1
    return most


# --- random-restart annealing ------------------------------------------------------------------------


@compiled
def next_random(state):
    """Advance state (1,) uint64 and return a float in [0, 1). SplitMix64 (Steele, Lea, Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def perturb(best, limits, temperature, state, q):
    """Write q (n,): best plus a uniform random offset of up to temperature times each joint's range.

    Offsets that leave the limits are folded back, so temperature 1 covers the whole range.
    """
    for i in range(best.shape[0]):
        low, high = limits[0, i], limits[1, i]
        offset = 2.0 * next_random(state) - 1.0
        if not isfinite(high - low):
            q[i] = best[i] + offset * temperature * pi
            continue
        value = best[i] + offset * temperature * (high - low)
        if value < low:
            value = min(2.0 * low - value, high)
        elif value > high:
            value = max(2.0 * high - value, low)
        q[i] = value


@compiled
def anneal(joints, tool, limits, goal, settings, first, last, state, q):
    """Descents number first to last - 1 of the random-restart annealing; q (n,) in: start, out: best.

    Descent 0 starts at q itself, every later one at the best so far plus a random offset that
    shrinks with a temperature and is re-heated. Returns (number of the last descent, position
    error [m] and direction error [rad] at q, whether both tolerances are met).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    trial = np.empty(n)
    best = inf
    if first > 0:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        best = position + settings[2] * settings[2] * direction
    for restart in range(first, last):
        if restart == 0:
            trial[:] = q
        else:
            perturb(q, limits, settings[6] ** ((restart - 1) % int(settings[5])), state, trial)
        descend_lm(joints, tool, limits, goal, settings, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        solved = position <= settings[0] * settings[0] and direction <= settings[1] * settings[1]
        cost = position + settings[2] * settings[2] * direction
        if cost < best or solved:
            best = cost
            q[:] = trial
        if solved:
            position_error, direction_error = goal_errors(joints, frames, goal)
            return restart, position_error, direction_error, True
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return last - 1, position_error, direction_error, False


# --- best effort -------------------------------------------------------------------------------------


@compiled
def approach(joints, tool, limits, goal, settings, weights, starts, state, q):
    """Best effort from q (n,), in place: least position error first, then least direction error.

    From q and from starts - 1 random configurations, one descent after another with the falling
    weights [m/rad]: the penalty form of the lexicographic problem. settings is used as scratch for
    the weight. Returns (position error [m], direction error [rad]).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    trial = q.copy()
    best_position, best_direction = inf, inf
    for start in range(starts):
        if start > 0:
            perturb(q, limits, 1.0, state, trial)
        for weight in weights:
            settings[2] = weight
            descend_lm(joints, tool, limits, goal, settings, trial, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        nearer = position < best_position - settings[0]
        if nearer or (position < best_position + settings[0] and direction < best_direction):
            best_position, best_direction = position, direction
            q[:] = trial
    return best_position, best_direction
