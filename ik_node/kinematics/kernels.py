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
period (n,)     2 pi where a whole turn of the joint changes nothing but the joint, else 0.
goal (9,)       position, direction, lateral in the base frame; NaN where not asked for.
frames          (2 m + 3, 3): the m axes, the m joint points, tool point, tool axis, lateral axis,
                all in the base frame.
settings (8,)   position tolerance [m], direction tolerance [chord], weight [m/rad], iterations per
                descent, stall ratio, temperatures per cycle, cooling factor, method of descent.
"""

from math import acos, atan2, ceil, cos, floor, inf, isfinite, isnan, nan, pi, sin, sqrt

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
            x, y, z = (
                px - frames[m + i, 0],
                py - frames[m + i, 1],
                pz - frames[m + i, 2],
            )
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
    x, y, z = (
        frames[2 * m, 0] - goal[0],
        frames[2 * m, 1] - goal[1],
        frames[2 * m, 2] - goal[2],
    )
    position_error = sqrt(x * x + y * y + z * z)
    if isnan(goal[3]):
        return position_error, 0.0
    return position_error, angle_between(frames[2 * m + 1], goal[3:6])


@compiled
def squared_errors(joints, frames, goal):
    """Return (squared position error [m^2], squared chord between the directions)."""
    m = joints.shape[0]
    x, y, z = (
        goal[0] - frames[2 * m, 0],
        goal[1] - frames[2 * m, 1],
        goal[2] - frames[2 * m, 2],
    )
    position = x * x + y * y + z * z
    if isnan(goal[3]):
        return position, 0.0
    x, y, z = (
        goal[3] - frames[2 * m + 1, 0],
        goal[4] - frames[2 * m + 1, 1],
        goal[5] - frames[2 * m + 1, 2],
    )
    return position, x * x + y * y + z * z


@compiled
def clip(q, limits):
    """Bring q (n,) inside the limits, in place."""
    for i in range(q.shape[0]):
        if q[i] < limits[0, i]:
            q[i] = limits[0, i]
        elif q[i] > limits[1, i]:
            q[i] = limits[1, i]


FIRST_DAMPING = 0.1  # 1/rad^2, of a descent that starts far away
LEAST_DAMPING = 1e-9  # share of the largest diagonal entry, so that no matrix is singular
INFORMED = 8  # restarts from the table of known poses, before the random ones
DLS_DAMPING = 0.3  # 1/rad^2
MOST_STEP = 0.7  # rad or m, of a joint in one step along the Jacobian's transpose
SPLIT_SWEEPS = 30  # of coordinate descent, in which each joint serves either the point or the axis
PATIENCE = 20  # iterations in which a descent must have gained something
LM, DLS, TRANSPOSE, CCD = 0, 1, 2, 3  # methods of descent
AIM = 1e-6  # m and rad: descents go on to here, however coarse the tolerances

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
    ex, ey, ez = (
        goal[0] - frames[2 * m, 0],
        goal[1] - frames[2 * m, 1],
        goal[2] - frames[2 * m, 2],
    )
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
def damped_step(hessian, gradient, free, damping, factor, step):
    """Solve (H + damping I) step = gradient by L D L^T, frozen joints left out.

    factor (n, n) holds L D below the diagonal, L^T above it and the inverse of D on it, where a 0 takes
    a frozen joint's row and column out of everything.
    """
    n = gradient.shape[0]
    for i in range(n):
        total, pivot = gradient[i], hessian[i, i] + damping
        for j in range(i):
            s = hessian[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[k, j]
            factor[i, j] = s
            factor[j, i] = s * factor[j, j]
            total -= factor[j, i] * step[j]
            pivot -= s * factor[j, i]
        factor[i, i] = free[i] / pivot if pivot > 1e-300 else 1e300 * free[i]
        step[i] = total
    for i in range(n - 1, -1, -1):
        s = step[i] * factor[i, i]
        for k in range(i + 1, n):
            s -= factor[i, k] * step[k]
        step[i] = free[i] * s


@compiled
def descend_lm(joints, tool, limits, goal, settings, damping, q, frames, work):
    """Bounded Levenberg-Marquardt descent from q (n,), in place; frames are left at the returned q.

    Joints at a limit that the gradient pushes further out are frozen for the step; the step is
    clipped to the limits. The damping is the squared error times damping [1/rad^2] (Sugihara 2011:
    large far away, vanishing at the goal), times 10 for every step refused. Ends within AIM and both
    tolerances, at a local minimum or after the iterations allowed. Returns the number of iterations.
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
    position_goal = min(settings[0], AIM) ** 2
    direction_goal = min(settings[1], AIM) ** 2
    weight = settings[2]
    most = int(settings[3])
    stalled, stiffness = 0, 1.0
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
        floor = 0.0
        for i in range(n):
            floor = max(floor, LEAST_DAMPING * hessian[i, i])
        better = False
        for _ in range(8):
            damped_step(hessian, gradient, free, stiffness * (damping * cost + floor), factor, step)
            for i in range(n):
                trial[i] = q[i] + step[i]
            clip(trial, limits)
            forward(joints, tool, trial, frames)
            position, direction = squared_errors(joints, frames, goal)
            new = position + weight * weight * direction
            if new < cost:
                better = True
                break
            stiffness *= 10.0
        if not better:
            forward(joints, tool, q, frames)
            return iteration + 1
        stalled = stalled + 1 if cost - new < settings[4] * cost else 0
        cost = new
        for i in range(n):
            q[i] = trial[i]
        stiffness = max(0.1 * stiffness, 1.0)
        if stalled == 3:
            return iteration + 1
    return most


@compiled
def falls(least, iteration, stall_ratio, mark):
    """Return (whether to go on, new mark): every PATIENCE iterations least must be below its mark.

    mark: what the least cost so far has to fall below by the next look, stall_ratio below the last.
    """
    if iteration % PATIENCE != 0:
        return True, mark
    return least <= mark, (1.0 - stall_ratio) * least


@compiled
def descend_dls(joints, tool, limits, goal, settings, q, frames, work):
    """Damped least-squares descent from q (n,), in place; frames are left at the returned q.

    The damped pseudo-inverse with the squared error, times DLS_DAMPING, as damping (Chan and Lawrence
    1988). Every step is taken, whether the error falls or not; the best configuration on the way is
    returned. Limits as in descend_lm. Returns the number of iterations.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, step, free, best = (
        work[3 * n, :n],
        work[3 * n + 1, :n],
        work[3 * n + 2, :n],
        work[3 * n + 3, :n],
    )
    position_goal = min(settings[0], AIM) ** 2
    direction_goal = min(settings[1], AIM) ** 2
    weight = settings[2]
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
    least, mark = inf, inf
    iteration = 0
    while True:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + weight * weight * direction
        if cost < least:
            least = cost
            for i in range(n):
                best[i] = q[i]
        met = position <= position_goal and direction <= direction_goal
        go_on, mark = falls(least, iteration, settings[4], mark)
        if met or not go_on or iteration >= settings[3]:
            break
        iteration += 1
        normal_equations(joints, frames, goal, weight, jac, hessian, gradient)
        damping = DLS_DAMPING * cost
        for i in range(n):
            outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (
                q[i] >= limits[1, i] and gradient[i] > 0.0
            )
            free[i] = 0.0 if outward else 1.0
            damping = max(damping, LEAST_DAMPING * hessian[i, i])
        damped_step(hessian, gradient, free, damping, factor, step)
        for i in range(n):
            q[i] += step[i]
        clip(q, limits)
    if not cost <= least:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return iteration


@compiled
def descend_transpose(joints, tool, limits, goal, settings, q, frames, work):
    """Jacobian-transpose descent from q (n,), in place; frames are left at the returned q.

    The step along J^T e is the one that is best for the linear model, <e, J J^T e> / |J J^T e|^2
    (Buss 2004). It is used twice, which ends the zigzag that makes steepest descent slow near the
    target (Raydan and Svaiter 2002: Cauchy-Barzilai-Borwein). No joint moves more than MOST_STEP at
    once; joints at a limit that the step pushes further out are frozen. The best configuration on
    the way is returned. Returns the number of iterations.
    """
    n = q.shape[0]
    hessian, jac = work[:n, :n], work[2 * n : 3 * n, :6]
    gradient, best = work[3 * n, :n], work[3 * n + 1, :n]
    position_goal = min(settings[0], AIM) ** 2
    direction_goal = min(settings[1], AIM) ** 2
    weight = settings[2]
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
    least, mark, length = inf, inf, 0.0
    iteration = 0
    while True:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + weight * weight * direction
        if cost < least:
            least = cost
            for i in range(n):
                best[i] = q[i]
        met = position <= position_goal and direction <= direction_goal
        go_on, mark = falls(least, iteration, settings[4], mark)
        if met or not go_on or iteration >= settings[3]:
            break
        iteration += 1
        normal_equations(joints, frames, goal, weight, jac, hessian, gradient)
        across, steepest = 0.0, 0.0
        for i in range(n):
            if (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0):
                gradient[i] = 0.0
            across += gradient[i] * gradient[i]
            steepest = max(steepest, abs(gradient[i]))
        if iteration % 2 == 1 or length == 0.0:
            moved = 0.0
            for k in range(6):
                total = 0.0
                for i in range(n):
                    total += jac[i, k] * gradient[i]
                moved += total * total
            length = across / moved if moved > 0.0 else 0.0
        if not (across > 0.0 and 0.0 < length < inf):
            break
        share = min(1.0, MOST_STEP / (length * steepest))
        for i in range(n):
            q[i] += share * length * gradient[i]
        clip(q, limits)
    if not cost <= least:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return iteration


@compiled
def turn_onto(ax, ay, az, x, y, z, u, v, w):
    """Return (sine, cosine) of the turn about the hinge (ax, ay, az) that brings x, y, z nearest to u, v, w.

    Both are projected onto the plane of the hinge; sine and cosine are times the product of the two
    lengths there, so that several pairs can be weighed and added (Wang and Chen 1991).
    """
    sine = ax * (y * w - z * v) + ay * (z * u - x * w) + az * (x * v - y * u)
    along = (ax * x + ay * y + az * z) * (ax * u + ay * v + az * w)
    return sine, x * u + y * v + z * w - along


@compiled
def half_turn(sine, cosine, least):
    """Return (w, s): the unit quaternion (w, s axis) of the turn with this sine and cosine, w >= 0.

    sine and cosine may be times any length above least; below it there is no turn. Half-angle
    formulas that are exact for opposite vectors too, where the cross product says nothing.
    """
    length = sqrt(sine * sine + cosine * cosine)
    if not length > least:
        return 1.0, 0.0
    if cosine >= 0.0:
        w = sqrt(0.5 + 0.5 * cosine / length)
        return w, 0.5 * sine / (length * w)
    s = sqrt(0.5 - 0.5 * cosine / length)
    return 0.5 * abs(sine) / (length * s), s if sine >= 0.0 else -s


@compiled
def turned_by(w, s, ax, ay, az, x, y, z):
    """Return the vector (x, y, z) turned by the unit quaternion (w, s (ax, ay, az))."""
    tx, ty, tz = s * (ay * z - az * y), s * (az * x - ax * z), s * (ax * y - ay * x)
    return (
        x + 2.0 * (w * tx + s * (ay * tz - az * ty)),
        y + 2.0 * (w * ty + s * (az * tx - ax * tz)),
        z + 2.0 * (w * tz + s * (ax * ty - ay * tx)),
    )


@compiled
def hinge_within(value, low, high):
    """Return the angle nearest to value, whole turns being nothing, that is within the limits."""
    if low <= value <= high:
        return value
    value += (
        2.0 * pi * (ceil((low - value) / (2.0 * pi)) if value < low else floor((high - value) / (2.0 * pi)))
    )
    if low <= value <= high:
        return value
    return low if cos(value - low) > cos(value - high) else high


@compiled
def descend_ccd(joints, tool, limits, goal, settings, q, frames, work):
    """Quaternion cyclic coordinate descent from q (n,), in place; frames are left at the returned q.

    From tip to base, each hinge takes the quaternion that turns the tool onto the goal, projected onto
    its axis and held within its limits; each slide takes the projection of the way. At first the last
    n - 3 joints turn the tool axis onto the direction and the others bring the tool point to the
    position; after SPLIT_SWEEPS every joint serves both, which never makes things worse (Wang and
    Chen 1991). A joint that drives several (mimics) takes a Newton step. The best configuration on
    the way is returned. Returns the number of sweeps.
    """
    n, m = q.shape[0], joints.shape[0]
    jac, best, drives = work[:n, :6], work[n, :n], work[n + 1, :n]
    position_goal = min(settings[0], AIM) ** 2
    direction_goal = min(settings[1], AIM) ** 2
    weight = settings[2]
    square = 0.0 if isnan(goal[3]) else weight * weight
    for i in range(n):
        drives[i] = 0.0
    for i in range(m):
        drives[int(joints[i, 7])] += 1.0
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
    least, mark = inf, inf
    sweep = 0
    while True:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + weight * weight * direction
        if cost < least:
            least = cost
            for i in range(n):
                best[i] = q[i]
        met = position <= position_goal and direction <= direction_goal
        go_on, mark = falls(least, sweep, settings[4], mark)
        if met or (not go_on and sweep > SPLIT_SWEEPS) or sweep >= settings[3]:
            break
        sweep += 1
        if sweep == SPLIT_SWEEPS:
            mark = inf
            for i in range(n):
                q[i] = best[i]
            forward(joints, tool, q, frames)
        px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
        dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
        for i in range(m - 1, -1, -1):
            j = int(joints[i, 7])
            ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
            bx, by, bz = frames[m + i, 0], frames[m + i, 1], frames[m + i, 2]
            gx, gy, gz = goal[0] - px, goal[1] - py, goal[2] - pz
            if drives[j] > 1.0:
                forward(joints, tool, q, frames)
                jacobian(joints, frames, jac)
                slope, curve = jac[j, 0] * gx + jac[j, 1] * gy + jac[j, 2] * gz, 0.0
                for k in range(3):
                    curve += jac[j, k] * jac[j, k]
                    if square > 0.0:
                        slope += square * jac[j, 3 + k] * (goal[3 + k] - frames[2 * m + 1, k])
                        curve += square * jac[j, 3 + k] * jac[j, 3 + k]
                if curve > 0.0:
                    q[j] = min(max(q[j] + slope / curve, limits[0, j]), limits[1, j])
                forward(joints, tool, q, frames)
                px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
                dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
                continue
            ratio = joints[i, 8]
            if ratio == 0.0:
                continue
            if joints[i, 6] != 0.0:
                way = (ax * gx + ay * gy + az * gz) / ratio
                value = min(max(q[j] + way, limits[0, j]), limits[1, j])
                way = ratio * (value - q[j])
                q[j] = value
                px, py, pz = px + way * ax, py + way * ay, pz + way * az
                continue
            sine, cosine = 0.0, 0.0
            splits = sweep < SPLIT_SWEEPS and square > 0.0
            if not splits or i < m - (n - 3):
                sine, cosine = turn_onto(
                    ax, ay, az, px - bx, py - by, pz - bz, goal[0] - bx, goal[1] - by, goal[2] - bz
                )
            if square > 0.0 and (not splits or i >= m - (n - 3)):
                more, less = turn_onto(ax, ay, az, dx, dy, dz, goal[3], goal[4], goal[5])
                sine, cosine = sine + square * more, cosine + square * less
            w, s = half_turn(sine, cosine, 1e-13 * weight * weight)
            angle = 2.0 * atan2(s, w)
            value = hinge_within(q[j] + angle / ratio, limits[0, j], limits[1, j])
            if value != q[j] + angle / ratio:
                angle = ratio * (value - q[j])
                w, s = cos(0.5 * angle), sin(0.5 * angle)
            q[j] = value
            x, y, z = turned_by(w, s, ax, ay, az, px - bx, py - by, pz - bz)
            px, py, pz = bx + x, by + y, bz + z
            dx, dy, dz = turned_by(w, s, ax, ay, az, dx, dy, dz)
    if not cost <= least:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return sweep


@compiled
def descend(joints, tool, limits, goal, settings, q, frames, work):
    """One descent by the method that settings name, from q (n,), in place. Returns the iterations."""
    method = int(settings[7])
    if method == DLS:
        return descend_dls(joints, tool, limits, goal, settings, q, frames, work)
    if method == TRANSPOSE:
        return descend_transpose(joints, tool, limits, goal, settings, q, frames, work)
    if method == CCD:
        return descend_ccd(joints, tool, limits, goal, settings, q, frames, work)
    return descend_lm(joints, tool, limits, goal, settings, FIRST_DAMPING, q, frames, work)


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
def tabulate(joints, tool, samples, weight, table):
    """Fill table (n + 6, K) from samples (K, n): configurations, tool points, weighted tool axes."""
    n = samples.shape[1]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    m = joints.shape[0]
    for k in range(samples.shape[0]):
        forward(joints, tool, samples[k], frames)
        for i in range(n):
            table[i, k] = samples[k, i]
        for i in range(3):
            table[n + i, k] = frames[2 * m, i]
            table[n + 3 + i, k] = weight * frames[2 * m + 1, i]


@compiled
def measure(table, goal, weight, distances):
    """Write the squared distances (K,) from goal to the tool poses of table."""
    n = table.shape[0] - 6
    x, y, z = goal[0], goal[1], goal[2]
    px, py, pz = table[n], table[n + 1], table[n + 2]
    dx, dy, dz = table[n + 3], table[n + 4], table[n + 5]
    if isnan(goal[3]):
        for k in range(distances.shape[0]):
            distances[k] = (px[k] - x) ** 2 + (py[k] - y) ** 2 + (pz[k] - z) ** 2
        return
    u, v, w = weight * goal[3], weight * goal[4], weight * goal[5]
    for k in range(distances.shape[0]):
        position = (px[k] - x) ** 2 + (py[k] - y) ** 2 + (pz[k] - z) ** 2
        distances[k] = position + (dx[k] - u) ** 2 + (dy[k] - v) ** 2 + (dz[k] - w) ** 2


@compiled
def next_start(restart, limits, goal, settings, table, distances, state, best, q):
    """Write q (n,), where descent number restart starts.

    0: at best (n,). The next INFORMED ones: at the configurations of table (see tabulate) that come
    nearest to goal. Every later one: at best plus a random offset that shrinks with a temperature and
    is re-heated. distances (K,) is kept from one call to the next.
    """
    if restart == 0:
        q[:] = best
    elif restart <= INFORMED:
        if restart == 1:
            measure(table, goal, settings[2], distances)
        nearest = distances.argmin()
        distances[nearest] = inf
        q[:] = table[: q.shape[0], nearest]
    else:
        temperature = settings[6] ** ((restart - INFORMED - 1) % int(settings[5]))
        perturb(best, limits, temperature, state, q)


@compiled
def anneal(joints, tool, limits, goal, settings, table, first, last, state, q):
    """Descents number first to last - 1 of the random-restart annealing; q (n,) in: start, out: best.

    Descents start where next_start says. Returns (number of the last descent, position error [m] and
    direction error [rad] at q, whether both tolerances are met).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    trial = np.empty(n)
    distances = np.empty(table.shape[1])
    best = inf
    if first > 0:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        best = position + settings[2] * settings[2] * direction
    for restart in range(first, last):
        next_start(restart, limits, goal, settings, table, distances, state, q, trial)
        descend(joints, tool, limits, goal, settings, trial, frames, work)
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


# --- closed form -------------------------------------------------------------------------------------
#
# form (14, 3) describes an arm at its zero pose in the base frame, built by closed_form.py:
# rows 0 w1, 1 c1 (axis 1), 2 u (axis 2, and 3, 4 up to sign), 3 c2, 4 c4 or W (end of the second
# planar link), 5 l1 and 6 l2 (planar links, perpendicular to u), 7 w4, 8 w5, 9 c5, 10 p0, 11 d0,
# 12 (kind, 1 if q5 is free, typical length), 13 (1 if this is exactly the arm's geometry, signs of
# axes 3 and 4 against u).

PARALLEL = 1.0  # axes 2, 3, 4 parallel
WRIST = 2.0  # axes 2, 3 parallel; axes 4, 5 and the tool axis meet in one point W
MOST_CANDIDATES = 16
ROOT_SLACK = 1e-6  # a root missed by this much still becomes a candidate; FK decides in the end
EXACT = 1e-9  # m and rad: what the formula misses by more is polished on the true model
HOPELESS = 1e-2  # rad and share of the reach: what it misses by more is no solution
SQRT_HALF = sqrt(0.5)
SQRT3 = sqrt(3.0)


@compiled
def extrema(c, out):
    """Write the real zeros of the derivative of the quartic c, ascending; return how many (1 or 3).

    Vieta's trigonometric and Cardano's real root. Good to some digits, which is all that a bracket needs.
    """
    lead = 0.25 / c[4]
    a, b, d = 3.0 * c[3] * lead, 2.0 * c[2] * lead, c[1] * lead
    q = (a * a - 3.0 * b) / 9.0
    r = (2.0 * a * a * a - 9.0 * a * b + 27.0 * d) / 54.0
    gap = q * q * q - r * r
    if gap > 0.0:
        root = sqrt(q)
        third = atan2(sqrt(gap), r) / 3.0
        c1, s1 = root * cos(third), SQRT3 * root * sin(third)
        out[0], out[1], out[2] = -2.0 * c1 - a / 3.0, c1 - s1 - a / 3.0, c1 + s1 - a / 3.0
        return 3
    e = (abs(r) + sqrt(-gap)) ** (1.0 / 3.0)
    if r > 0.0:
        e = -e
    out[0] = (e + q / e if e != 0.0 else 0.0) - a / 3.0
    return 1


@compiled
def quartic_root(c, low, high, x, low_is_positive):
    """The zero of the quartic c in (low, high), where it is monotone: Newton from x, kept inside.

    Steps square the error, so one below 1e-8 leaves nothing but rounding. Where Newton has not converged
    after 20 steps (near triple roots) bisection finishes.
    """
    if not low < x < high:
        x = 0.5 * (low + high)
    for k in range(80):
        value = (((c[4] * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0]
        rate = ((4.0 * c[4] * x + 3.0 * c[3]) * x + 2.0 * c[2]) * x + c[1]
        if (value > 0.0) == low_is_positive:
            low = x
        else:
            high = x
        new = x - value / rate if rate != 0.0 else low
        if k >= 20 or not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - x) <= (1e-8 if k < 20 else 1e-14) * (1.0 + abs(x)):
            return new
        x = new
    return x


@compiled
def quartic_roots(c, stops, roots):
    """Write the real roots of the quartic with ascending coefficients c (5,); return how many.

    Between neighbouring extrema the quartic is monotone. An extremum that misses zero by no more
    than ROOT_SLACK counts as a double root. stops (5,) is scratch, roots (5,) output.
    """
    scale = max(abs(c[0]), abs(c[1]), abs(c[2]), abs(c[3]), abs(c[4]))
    bound = scale / abs(c[4]) + 1.0  # Cauchy
    count = extrema(c, stops)
    found = 0
    low, low_value = -bound, c[4]  # far out the leading term decides the sign
    for k in range(count + 1):
        if k < count:
            high = stops[k]
            high_value = (((c[4] * high + c[3]) * high + c[2]) * high + c[1]) * high + c[0]
        else:
            high, high_value = bound, c[4]
        if (low_value > 0.0) != (high_value > 0.0):
            if 0 < k < count:
                start = low + (high - low) * low_value / (low_value - high_value)
            else:  # outside the extrema: where the parabola of the nearest one crosses zero
                stop, value = (high, high_value) if k == 0 else (low, low_value)
                curve = (6.0 * c[4] * stop + 3.0 * c[3]) * stop + c[2]
                step = sqrt(abs(value / curve)) if curve != 0.0 else 1.0
                start = stop - step if k == 0 else stop + step
            roots[found] = quartic_root(c, low, high, start, low_value > 0.0)
            found += 1
        elif k < count and abs(high_value) <= ROOT_SLACK * scale * (1.0 + high * high) * (1.0 + high * high):
            roots[found] = high
            found += 1
        low, low_value = high, high_value
    return found


@compiled
def turned(w, c, s, x, y, z):
    """Vector (x, y, z) turned about the unit axis w (3,) by the angle with cosine c and sine s."""
    k = (1.0 - c) * (w[0] * x + w[1] * y + w[2] * z)
    return (
        c * x + s * (w[1] * z - w[2] * y) + k * w[0],
        c * y + s * (w[2] * x - w[0] * z) + k * w[1],
        c * z + s * (w[0] * y - w[1] * x) + k * w[2],
    )


@compiled
def harmonics(w, x, y, z, ux, uy, uz):
    """(a, b, c) with u . Rot(w, q) (x, y, z) = a + b cos q + c sin q for every q."""
    a = (w[0] * x + w[1] * y + w[2] * z) * (w[0] * ux + w[1] * uy + w[2] * uz)
    b = ux * x + uy * y + uz * z - a
    c = ux * (w[1] * z - w[2] * y) + uy * (w[2] * x - w[0] * z) + uz * (w[0] * y - w[1] * x)
    return a, b, c


@compiled
def nearest_turn(value, near, low, high):
    """value plus the multiple of 2 pi that brings it nearest to near within the limits, else NaN.

    Limits may be missed by ROOT_SLACK and are then taken: FK decides in the end.
    """
    turn = 2.0 * pi
    best = value + turn * floor((near - value) / turn + 0.5)
    if best < low - ROOT_SLACK:
        best += turn * ceil((low - ROOT_SLACK - best) / turn)
    elif best > high + ROOT_SLACK:
        best -= turn * ceil((best - high - ROOT_SLACK) / turn)
    if best < low - ROOT_SLACK or best > high + ROOT_SLACK:
        return nan
    return min(max(best, low), high)


@compiled
def add_pair(limits, seed, c1, s1, q5, c5, s5, pairs, count):
    """Insert values of joints 1 and 5 into pairs (k, 7), unless a limit is in the way; returns the new count.

    A row is (larger move from seed, q1, its cosine and sine, q5, its cosine and sine); the least move
    comes first.
    """
    q1 = nearest_turn(atan2(s1, c1), seed[0], limits[0, 0], limits[1, 0])
    q5 = nearest_turn(q5, seed[4], limits[0, 4], limits[1, 4])
    if isnan(q1) or isnan(q5):
        return count
    move = max(abs(q1 - seed[0]), abs(q5 - seed[4]))
    k = count
    while k > 0 and pairs[k - 1, 0] > move:
        pairs[k] = pairs[k - 1]
        k -= 1
    row = pairs[k]
    row[0], row[1], row[2], row[3], row[4], row[5], row[6] = move, q1, c1, s1, q5, c5, s5
    return count + 1


@compiled
def two_links(u, l1, l2, mx, my, mz, side):
    """Planar 2R: (reached, q2, q3) with Rot(u, q2) (l1 + Rot(u, q3) l2) = m up to its part along u.

    side 0 or 1: elbow. Where both elbows are the same, side 1 is not reached.
    """
    along = u[0] * mx + u[1] * my + u[2] * mz
    mx, my, mz = mx - along * u[0], my - along * u[1], mz - along * u[2]
    a = l1[0] * l2[0] + l1[1] * l2[1] + l1[2] * l2[2]
    b = (
        l1[0] * (u[1] * l2[2] - u[2] * l2[1])
        + l1[1] * (u[2] * l2[0] - u[0] * l2[2])
        + l1[2] * (u[0] * l2[1] - u[1] * l2[0])
    )
    first = l1[0] * l1[0] + l1[1] * l1[1] + l1[2] * l1[2]
    second = l2[0] * l2[0] + l2[1] * l2[1] + l2[2] * l2[2]
    most = sqrt(first * second)
    ratio = 0.5 * (mx * mx + my * my + mz * mz - first - second) / most
    if abs(ratio) > 1.0 + ROOT_SLACK:
        return False, 0.0, 0.0
    if abs(ratio) >= 1.0:
        if side == 1:
            return False, 0.0, 0.0
        ratio = 1.0 if ratio > 0.0 else -1.0
    bend = sqrt(1.0 - ratio * ratio)
    if side == 1:
        bend = -bend
    # a cos q3 + b sin q3 = most * ratio
    c3, s3 = (a * ratio - b * bend) / most, (b * ratio + a * bend) / most
    x, y, z = turned(u, c3, s3, l2[0], l2[1], l2[2])
    x, y, z = x + l1[0], y + l1[1], z + l1[2]
    sine = u[0] * (y * mz - z * my) + u[1] * (z * mx - x * mz) + u[2] * (x * my - y * mx)
    return True, atan2(sine, x * mx + y * my + z * mz), atan2(s3, c3)


@compiled
def planar_candidates(form, goal, pair, spare, out):
    """Write into out the at most two configurations with joints 1 and 5 given by pair (7,); return how many.

    Joint 1 turned back, joints 2, 3, 4 work in one plane: theta = q2 + q3 + q4 turns the tool axis
    onto the goal's, or as near as it can; what is left is the triangle of the two planar links.
    spare (5,): an angle that is free is taken from here.
    """
    _, q1, c1, s1, q5, c5, s5 = pair
    w1, r1, u, r2 = form[0], form[1], form[2], form[3]
    r4, w5, r5, p0 = form[4], form[8], form[9], form[10]
    d0, sign = form[11], form[13]
    dx, dy, dz = turned(w1, c1, -s1, goal[3], goal[4], goal[5])
    px, py, pz = turned(w1, c1, -s1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    vx, vy, vz = turned(w5, c5, s5, d0[0], d0[1], d0[2])
    ex, ey, ez = turned(w5, c5, s5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    uv = u[0] * vx + u[1] * vy + u[2] * vz
    ud = u[0] * dx + u[1] * dy + u[2] * dz
    sine = u[0] * (vy * dz - vz * dy) + u[1] * (vz * dx - vx * dz) + u[2] * (vx * dy - vy * dx)
    cosine = vx * dx + vy * dy + vz * dz - uv * ud
    length = sqrt(sine * sine + cosine * cosine)
    if length > 1e-12:
        theta = atan2(sine, cosine)
        ct, st = cosine / length, sine / length
    else:  # the tool axis is parallel to u: theta is free
        theta = spare[1] + sign[1] * spare[2] + sign[2] * spare[3]
        ct, st = cos(theta), sin(theta)
    ex, ey, ez = turned(u, ct, st, ex + r5[0] - r4[0], ey + r5[1] - r4[1], ez + r5[2] - r4[2])
    mx, my, mz = (
        px + r1[0] - ex - r2[0],
        py + r1[1] - ey - r2[1],
        pz + r1[2] - ez - r2[2],
    )
    count = 0
    for side in range(2):
        reached, q2, q3 = two_links(u, form[5], form[6], mx, my, mz, side)
        if reached:
            row = out[count]
            row[0], row[1], row[2], row[3], row[4] = q1, q2, sign[1] * q3, sign[2] * (theta - q2 - q3), q5
            count += 1
    return count


@compiled
def perpendicular_plane(v1, v2, n1, n2):
    """Write an orthonormal basis n1, n2 (4,) of what is perpendicular to v1 and v2 (4,), orthonormal in R^4.

    The dual of the bivector of v1 and v2 turns that plane by a right angle and takes the rest to zero.
    """
    a0, a1, a2, a3 = v1[0], v1[1], v1[2], v1[3]
    b0, b1, b2, b3 = v2[0], v2[1], v2[2], v2[3]
    p01, p02, p03 = a0 * b1 - a1 * b0, a0 * b2 - a2 * b0, a0 * b3 - a3 * b0
    p12, p13, p23 = a1 * b2 - a2 * b1, a1 * b3 - a3 * b1, a2 * b3 - a3 * b2
    pick, most = 0, -1.0
    for k in range(4):
        left = 1.0 - v1[k] * v1[k] - v2[k] * v2[k]  # squared length of row k of the dual
        if left > most:
            pick, most = k, left
    if pick == 0:
        x0, x1, x2, x3 = 0.0, p23, -p13, p12
    elif pick == 1:
        x0, x1, x2, x3 = -p23, 0.0, p03, -p02
    elif pick == 2:
        x0, x1, x2, x3 = p13, -p03, 0.0, p01
    else:
        x0, x1, x2, x3 = -p12, p02, -p01, 0.0
    size = 1.0 / sqrt(x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3)
    x0, x1, x2, x3 = x0 * size, x1 * size, x2 * size, x3 * size
    n1[0], n1[1], n1[2], n1[3] = x0, x1, x2, x3
    n2[0] = p23 * x1 - p13 * x2 + p12 * x3
    n2[1] = p03 * x2 - p23 * x0 - p02 * x3
    n2[2] = p13 * x0 - p03 * x1 + p01 * x3
    n2[3] = p02 * x1 - p12 * x0 - p01 * x2


@compiled
def parallel_pairs(form, limits, goal, seed, work, pairs):
    """Joints 1 and 5 of all configurations of an arm with axes 2, 3, 4 parallel that may meet goal.

    Rotations about u change neither the u component of a direction nor that of a point, so joints
    1 and 5 alone meet two equations M x = r in x = (cos q1, sin q1, cos q5, sin q5). Their solutions
    x0 + N z that lie on both unit circles are the zeros of a trigonometric polynomial of degree 2.
    Where q5 is free (the tool axis is axis 5) it is seed's, and the position alone gives q1.
    work (7, 7) is scratch. Returns the number of rows of pairs as in add_pair, -1 where the goal is
    singular.
    """
    w1, r1, u, w5 = form[0], form[1], form[2], form[8]
    r5, p0, d0 = form[9], form[10], form[11]
    scale = 1.0 / form[12, 2]
    x, y, z = goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2]
    ad, bd, cd = harmonics(w1, u[0], u[1], u[2], goal[3], goal[4], goal[5])
    ap, bp, cp = harmonics(w1, u[0], u[1], u[2], x, y, z)
    a5, b5, e5 = harmonics(w5, d0[0], d0[1], d0[2], u[0], u[1], u[2])
    g5, h5, k5 = harmonics(w5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2], u[0], u[1], u[2])
    right_d = a5 - ad
    right_p = u[0] * (r5[0] - r1[0]) + u[1] * (r5[1] - r1[1]) + u[2] * (r5[2] - r1[2]) + g5 - ap
    right_p, bp, cp, h5, k5 = (
        right_p * scale,
        bp * scale,
        cp * scale,
        h5 * scale,
        k5 * scale,
    )

    if form[12, 1] != 0.0:
        length = sqrt(bp * bp + cp * cp)
        if length < 1e-9:  # the goal lies on axis 1: only the direction asks for q1
            bp, cp, right_p = bd, cd, right_d
            length = sqrt(bp * bp + cp * cp)
            if length < 1e-9:
                return -1
        ratio = right_p / length
        if abs(ratio) > 1.0 + ROOT_SLACK:
            return 0
        ratio = min(max(ratio, -1.0), 1.0)
        other = sqrt(1.0 - ratio * ratio)
        q5 = min(max(seed[4], limits[0, 4]), limits[1, 4])
        c5, s5 = cos(q5), sin(q5)
        count = 0
        for side in range(1 if other == 0.0 else 2):
            t = other if side == 0 else -other
            c1, s1 = (bp * ratio - cp * t) / length, (cp * ratio + bp * t) / length
            count = add_pair(limits, seed, c1, s1, q5, c5, s5, pairs, count)
        return count

    # Orthonormal rows v1, v2 of M, the larger first; x0 in their span; then N perpendicular to both.
    v1, v2, n1, n2 = work[0], work[1], work[2], work[3]
    first, second = right_d, right_p
    v1[0], v1[1], v1[2], v1[3] = bd, cd, -b5, -e5
    v2[0], v2[1], v2[2], v2[3] = bp, cp, -h5, -k5
    if bp * bp + cp * cp + h5 * h5 + k5 * k5 > bd * bd + cd * cd + b5 * b5 + e5 * e5:
        first, second = right_p, right_d
        v2[0], v2[1], v2[2], v2[3] = bd, cd, -b5, -e5
        v1[0], v1[1], v1[2], v1[3] = bp, cp, -h5, -k5
    size = v1[0] * v1[0] + v1[1] * v1[1] + v1[2] * v1[2] + v1[3] * v1[3]
    if size < 1e-18:
        return -1
    size = 1.0 / sqrt(size)
    first *= size
    for k in range(4):
        v1[k] *= size
    for _ in range(2):
        dot = v1[0] * v2[0] + v1[1] * v2[1] + v1[2] * v2[2] + v1[3] * v2[3]
        second -= dot * first
        for k in range(4):
            v2[k] -= dot * v1[k]
    size = v2[0] * v2[0] + v2[1] * v2[1] + v2[2] * v2[2] + v2[3] * v2[3]
    if size < 1e-18:
        return -1
    size = 1.0 / sqrt(size)
    second *= size
    for k in range(4):
        v2[k] *= size
    perpendicular_plane(v1, v2, n1, n2)
    x0, x1 = first * v1[0] + second * v2[0], first * v1[1] + second * v2[1]
    x2, x3 = first * v1[2] + second * v2[2], first * v1[3] + second * v2[3]
    square = 2.0 - first * first - second * second
    if square < -ROOT_SLACK:
        return 0
    square = max(square, 0.0)
    radius = sqrt(square)
    # |(cos q1, sin q1)| = 1 on z = radius (cos t, sin t):
    # k0 + a1 cos t + b1 sin t + a2 cos 2t + b2 sin 2t = 0
    g00 = square * (n1[0] * n1[0] + n1[1] * n1[1])
    g11 = square * (n2[0] * n2[0] + n2[1] * n2[1])
    a1 = 2.0 * radius * (n1[0] * x0 + n1[1] * x1)
    b1 = 2.0 * radius * (n2[0] * x0 + n2[1] * x1)
    a2, b2 = 0.5 * (g00 - g11), square * (n1[0] * n2[0] + n1[1] * n2[1])
    k0 = x0 * x0 + x1 * x1 - 1.0 + 0.5 * (g00 + g11)
    # The half-angle substitution puts t = pi at infinity: turn the polynomial's largest value there.
    largest, cf, sf = -1.0, 1.0, 0.0
    c, s = 1.0, 0.0
    for _ in range(8):
        value = abs(k0 + a1 * c + b1 * s + a2 * (c * c - s * s) + 2.0 * b2 * c * s)
        if value > largest * (1.0 + 1e-9):
            largest, cf, sf = value, -c, -s
        c, s = SQRT_HALF * (c - s), SQRT_HALF * (c + s)
    if largest < 1e-12:
        return -1
    a1, b1 = a1 * cf + b1 * sf, b1 * cf - a1 * sf
    c2, s2 = cf * cf - sf * sf, 2.0 * cf * sf
    a2, b2 = a2 * c2 + b2 * s2, b2 * c2 - a2 * s2
    quartic, roots, stops = work[4], work[5], work[6]
    quartic[0] = k0 + a1 + a2
    quartic[1] = 2.0 * b1 + 4.0 * b2
    quartic[2] = 2.0 * k0 - 6.0 * a2
    quartic[3] = 2.0 * b1 - 4.0 * b2
    quartic[4] = k0 - a1 + a2
    count = 0
    for k in range(quartic_roots(quartic, stops, roots)):
        t = roots[k]
        c, s = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
        c, s = radius * (c * cf - s * sf), radius * (s * cf + c * sf)
        c1, s1 = x0 + n1[0] * c + n2[0] * s, x1 + n1[1] * c + n2[1] * s
        c5, s5 = x2 + n1[2] * c + n2[2] * s, x3 + n1[3] * c + n2[3] * s
        length1, length5 = sqrt(c1 * c1 + s1 * s1), sqrt(c5 * c5 + s5 * s5)
        if length1 < 0.1 or length5 < 0.1:
            continue
        c1, s1, c5, s5 = c1 / length1, s1 / length1, c5 / length5, s5 / length5
        count = add_pair(limits, seed, c1, s1, atan2(s5, c5), c5, s5, pairs, count)
    return count


@compiled
def wrist_pairs(form, limits, goal, seed, pairs):
    """Joint 1 of all configurations of an arm with a wrist point W that may meet goal, with seed's joint 5.

    Axes 4, 5 and the tool axis meet in W, so the goal says where W must be: one harmonic equation
    for q1. Returns the number of rows of pairs as in add_pair, -1 where the goal is singular.
    """
    w1, r1, u, w = form[0], form[1], form[2], form[4]
    x, y, z = wrist_point(form, goal)
    # u . Rot(w1, -q1) (W* - c1) = u . (W - c1), harmonic in -q1
    a, b, c = harmonics(w1, x, y, z, u[0], u[1], u[2])
    right = u[0] * (w[0] - r1[0]) + u[1] * (w[1] - r1[1]) + u[2] * (w[2] - r1[2]) - a
    length = sqrt(b * b + c * c)
    if length < 1e-9 * form[12, 2]:
        return -1
    ratio = right / length
    if abs(ratio) > 1.0 + ROOT_SLACK:
        return 0
    ratio = min(max(ratio, -1.0), 1.0)
    other = sqrt(1.0 - ratio * ratio)
    q5 = min(max(seed[4], limits[0, 4]), limits[1, 4])
    count = 0
    for side in range(1 if other == 0.0 else 2):
        t = other if side == 0 else -other
        c1, s1 = (b * ratio - c * t) / length, -(c * ratio + b * t) / length
        count = add_pair(limits, seed, c1, s1, q5, 1.0, 0.0, pairs, count)
    return count


@compiled
def wrist_point(form, goal):
    """The goal's wrist point W from a point of axis 1."""
    r1, w, p0, d0 = form[1], form[4], form[10], form[11]
    along = (p0[0] - w[0]) * d0[0] + (p0[1] - w[1]) * d0[1] + (p0[2] - w[2]) * d0[2]
    return (
        goal[0] - along * goal[3] - r1[0],
        goal[1] - along * goal[4] - r1[1],
        goal[2] - along * goal[5] - r1[2],
    )


@compiled
def wrist_candidates(form, goal, pair, out):
    """Write into out the at most four configurations with joint 1 given by pair (7,); return how many.

    The wrist point gives a planar triangle for q2 and q3. Then w4 . Rot(w5, q5) d0 = w4 . d' gives q5 and
    the turn about w4 gives q4. q4 is NaN where it is free.
    """
    w1, r1, u, r2 = form[0], form[1], form[2], form[3]
    w4, w5, d0, sign = form[7], form[8], form[11], form[13]
    _, q1, c1, s1, _, _, _ = pair
    ax, bx, cx = harmonics(w5, d0[0], d0[1], d0[2], w4[0], w4[1], w4[2])
    swing = sqrt(bx * bx + cx * cx)
    x, y, z = wrist_point(form, goal)
    px, py, pz = turned(w1, c1, -s1, x, y, z)
    dx, dy, dz = turned(w1, c1, -s1, goal[3], goal[4], goal[5])
    px, py, pz = px + r1[0] - r2[0], py + r1[1] - r2[1], pz + r1[2] - r2[2]
    count = 0
    for elbow in range(2):
        reached, q2, q3 = two_links(u, form[5], form[6], px, py, pz, elbow)
        if not reached:
            continue
        fx, fy, fz = turned(u, cos(q2 + q3), -sin(q2 + q3), dx, dy, dz)
        wf = w4[0] * fx + w4[1] * fy + w4[2] * fz
        wanted = (wf - ax) / swing
        if abs(wanted) > 1.0 + ROOT_SLACK:
            continue
        wanted = min(max(wanted, -1.0), 1.0)
        tilt = sqrt(1.0 - wanted * wanted)
        for flip in range(1 if tilt == 0.0 else 2):
            t = tilt if flip == 0 else -tilt
            c5, s5 = (bx * wanted - cx * t) / swing, (cx * wanted + bx * t) / swing
            ex, ey, ez = turned(w5, c5, s5, d0[0], d0[1], d0[2])
            we = w4[0] * ex + w4[1] * ey + w4[2] * ez
            sine = w4[0] * (ey * fz - ez * fy) + w4[1] * (ez * fx - ex * fz) + w4[2] * (ex * fy - ey * fx)
            cosine = ex * fx + ey * fy + ez * fz - we * wf
            on_axis = sine * sine + cosine * cosine < 1e-24
            row = out[count]
            row[0], row[1], row[2] = q1, q2, sign[1] * q3
            row[3], row[4] = nan if on_axis else atan2(sine, cosine), atan2(s5, c5)
            count += 1
    return count


@compiled
def candidates(form, limits, goal, seed, every, work, out):
    """Closed-form configurations for goal within the limits, each turned nearest to seed (5,).

    every: all of them, else those that may be nearest to seed by the largest single joint move. Returns
    the number of rows of out (16, 5), -1 where the goal is singular for the formula.
    """
    parallel = form[12, 0] == PARALLEL
    pairs = work[7:]
    if parallel:
        count = parallel_pairs(form, limits, goal, seed, work, pairs)
    else:
        count = wrist_pairs(form, limits, goal, seed, pairs)
    if count < 0:
        return -1
    kept, least = 0, inf
    for k in range(count):
        if pairs[k, 0] >= least and not every:
            break
        rows = out[kept:]
        if parallel:
            found = planar_candidates(form, goal, pairs[k], seed, rows)
        else:
            found = wrist_candidates(form, goal, pairs[k], rows)
        for r in range(found):
            move = 0.0
            for i in range(5):
                value = rows[r, i]
                if isnan(value):  # free
                    value = min(max(seed[i], limits[0, i]), limits[1, i])
                value = nearest_turn(value, seed[i], limits[0, i], limits[1, i])
                out[kept, i] = value
                move = max(move, abs(value - seed[i]))
            if not isnan(out[kept, 0] + out[kept, 1] + out[kept, 2] + out[kept, 3] + out[kept, 4]):
                least = min(least, move)
                kept += 1
    return kept


@compiled
def settle(joints, tool, limits, goal, settings, q, frames):
    """Check q (n,) by FK and polish it there if it misses EXACT; returns (solved, both errors)."""
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    if position > (5.0 * HOPELESS * settings[2]) ** 2 or direction > HOPELESS * HOPELESS:
        return False, inf, inf
    if position > EXACT * EXACT or direction > EXACT * EXACT:
        work = np.empty((3 * q.shape[0] + 4, max(q.shape[0], 6)))
        polish = np.empty(settings.shape[0])
        polish[:] = settings
        polish[0], polish[1], polish[3] = (
            min(settings[0], EXACT),
            min(settings[1], EXACT),
            8.0,
        )
        descend_lm(joints, tool, limits, goal, polish, 1e-8, q, frames, work)
        position, direction = squared_errors(joints, frames, goal)
    position_error, direction_error = goal_errors(joints, frames, goal)
    solved = position <= settings[0] * settings[0] and direction <= settings[1] * settings[1]
    return solved, position_error, direction_error


@compiled
def nearest_solution(joints, tool, limits, form, goal, settings, seed, q):
    """Closed-form solution nearest to seed (5,) by the largest single joint move, written into q.

    A candidate is checked by FK on the true model and polished there where the formula's geometry is
    only nearly the arm's. Returns (solved, position error [m], direction error [rad], whether the goal
    is regular for the formula).
    """
    work = np.empty((12, 7))
    found = np.empty((MOST_CANDIDATES, 5))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    for every in (False, True):  # the nearest one will do, unless FK rejects it
        count = candidates(form, limits, goal, seed, every, work, found)
        if count <= 0:
            break
        while count > 0:
            best, least = 0, inf
            for k in range(count):
                move = 0.0
                for i in range(5):
                    move = max(move, abs(found[k, i] - seed[i]))
                if move < least:
                    best, least = k, move
            q[:] = found[best]
            solved, position_error, direction_error = settle(joints, tool, limits, goal, settings, q, frames)
            if solved:
                return True, position_error, direction_error, True
            count -= 1
            found[best] = found[count]
    return False, inf, inf, count >= 0


# --- every solution ----------------------------------------------------------------------------------

DISTINCT = 1e-3  # rad or m: solutions that differ by less in every joint are one
SLIDE_END = 1e-7  # rad or m: a self-motion has been followed to its end when steps get shorter


@compiled
def add_distinct(period, found, count, q):
    """Append q (n,) to found (k, n) unless it is there already, whole periods apart or not.

    Returns the new count; a full table keeps what it has.
    """
    for k in range(count):
        same = True
        for i in range(q.shape[0]):
            gap = q[i] - found[k, i]
            if period[i] > 0.0:
                gap -= period[i] * floor(gap / period[i] + 0.5)
            if abs(gap) > DISTINCT:
                same = False
                break
        if same:
            return count
    if count < found.shape[0]:
        found[count] = q
        count += 1
    return count


@compiled
def formula_solutions(joints, tool, limits, period, form, goal, settings, seed, found):
    """Every closed-form solution within the limits, turned nearest to seed (5,); limits may be infinite.

    Each is polished and checked by FK on the true model. Returns the number of rows of found (16, 5).
    """
    work = np.empty((12, 7))
    raw = np.empty((MOST_CANDIDATES, 5))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    count = 0
    for k in range(candidates(form, limits, goal, seed, True, work, raw)):
        if settle(joints, tool, limits, goal, settings, raw[k], frames)[0]:
            count = add_distinct(period, found, count, raw[k])
    return count


@compiled
def slide(joints, tool, limits, goal, settings, seed, q, frames, work):
    """Move q (n,), a solution, along its self-motion to where the distance to seed cannot fall any more.

    Steps along the null space towards seed, as long as the last two say is best (Barzilai and
    Borwein), each brought back to the goal by a short descent and halved until it leads nearer: a
    self-motion may be bent more than the distance is. Joints that come to a limit stay there while
    they would leave it. In place. work (3 n + 8, max(n, 6)) is scratch.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient = work[3 * n, :n]  # descend_lm uses the rows up to 3 n + 3
    step, moved, last, free = (
        work[3 * n + 4, :n],
        work[3 * n + 5, :n],
        work[3 * n + 6, :n],
        work[3 * n + 7, :n],
    )
    trial, held = np.empty(n), np.empty((2, n))
    pull = 1e-8 * settings[2] * settings[2]
    step[:], moved[:] = 0.0, 0.0
    descend_lm(
        joints, tool, limits, goal, settings, 1e-8, q, frames, work
    )  # distances compare like with like
    for _ in range(100):
        forward(joints, tool, q, frames)
        normal_equations(joints, frames, goal, settings[2], jac, hessian, gradient)
        for i in range(n):
            free[i] = 1.0
            if hessian[i, i] < 1e-9 * pull:  # a joint that moves nothing goes all the way
                q[i] = min(max(seed[i], limits[0, i]), limits[1, i])
                free[i] = 0.0
            hessian[i, i] += pull
            gradient[i] = pull * (seed[i] - q[i])
            last[i] = step[i]
        outward = True
        while outward:  # joints that would leave the limits stay, the others make do without them
            damped_step(hessian, gradient, free, 0.0, factor, step)
            outward = False
            for i in range(n):
                if (q[i] < limits[0, i] + SLIDE_END and step[i] < 0.0) or (
                    q[i] > limits[1, i] - SLIDE_END and step[i] > 0.0
                ):
                    free[i] = 0.0
                    outward = True
        largest, before, square, change = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            largest = max(largest, abs(step[i]))
            before += (q[i] - seed[i]) ** 2
            square += moved[i] * moved[i]
            change += moved[i] * (last[i] - step[i])
        share = square / change if square < 10.0 * change else 10.0
        share = min(share, 0.3 / largest) if largest > 0.0 else 0.0
        nearer = False
        while share * largest > SLIDE_END and not nearer:
            for i in range(n):
                trial[i] = q[i] + share * step[i]
                held[0, i], held[1, i] = limits[0, i], limits[1, i]
                if free[i] == 0.0:
                    held[0, i], held[1, i] = trial[i], trial[i]
                elif trial[i] <= limits[0, i]:
                    held[1, i] = limits[0, i]
                elif trial[i] >= limits[1, i]:
                    held[0, i] = limits[1, i]
            descend_lm(joints, tool, held, goal, settings, 1e-8, trial, frames, work)
            position, direction = squared_errors(joints, frames, goal)
            if position <= settings[0] * settings[0] and direction <= settings[1] * settings[1]:
                after = 0.0
                for i in range(n):
                    after += (trial[i] - seed[i]) ** 2
                nearer = after < before
            share *= 0.5
        if not nearer:
            break
        for i in range(n):
            moved[i], q[i] = trial[i] - q[i], trial[i]


@compiled
def explore(joints, tool, limits, period, goal, settings, descents, state, seed, redundant, found, count):
    """Descents from uniform random configurations; distinct solutions are appended to found (k, n).

    redundant: the arm has more joints than the task needs; each solution is then represented by the
    member of its self-motion nearest to seed (n,). Returns (number found, descents that succeeded).
    """
    n = seed.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 8, max(n, 6)))
    q = np.empty(n)
    exact = settings.copy()  # or small errors would hide which way is nearer
    exact[0], exact[1] = min(settings[0], EXACT), min(settings[1], EXACT)
    successes = 0
    for _ in range(descents):
        perturb(seed, limits, 1.0, state, q)
        descend_lm(joints, tool, limits, goal, settings, FIRST_DAMPING, q, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        if position > settings[0] * settings[0] or direction > settings[1] * settings[1]:
            continue
        if redundant:
            slide(joints, tool, limits, goal, exact, seed, q, frames, work)
        if settle(joints, tool, limits, goal, settings, q, frames)[0]:
            successes += 1
            count = add_distinct(period, found, count, q)
    return count, successes


# --- reach -------------------------------------------------------------------------------------------


@compiled
def out_of_reach(shells, goal, tolerance):
    """1 if the position of goal is too far for a shell by more than tolerance [m], -1 if too near, else 0.

    shells (k, 5): center (3), least and most distance of the tool point from it.
    """
    for k in range(shells.shape[0]):
        x, y, z = goal[0] - shells[k, 0], goal[1] - shells[k, 1], goal[2] - shells[k, 2]
        distance = sqrt(x * x + y * y + z * z)
        if distance > shells[k, 4] + tolerance:
            return 1
        if distance < shells[k, 3] - tolerance:
            return -1
    return 0


# --- many goals --------------------------------------------------------------------------------------


@compiled
def solve_many(
    joints, tool, limits, form, trusted, goals, shells, settings, table, descents, random_seed, seeds, q,
    errors, solved,
):  # fmt: skip
    """Solve goals (N, 9) one after the other, each by formula if form has one, then by a few descents.

    trusted: no descents where the formula finds nothing. shells: as in out_of_reach, goals out of
    reach are left alone. seeds (N, n), or (1, n) for all. Writes solved (N,) bool and, where that is so,
    q (N, n) and errors (N, 2) [m, rad].
    """
    state = np.empty(1, np.uint64)
    for k in range(goals.shape[0]):
        seed = seeds[min(k, seeds.shape[0] - 1)]
        solved[k] = False
        if out_of_reach(shells, goals[k], settings[0]) != 0:
            continue
        regular = False
        if form[12, 0] != 0.0 and not isnan(goals[k, 3]):
            solved[k], errors[k, 0], errors[k, 1], regular = nearest_solution(
                joints, tool, limits, form, goals[k], settings, seed, q[k]
            )
        if not solved[k] and not (trusted and regular):
            state[0] = random_seed
            q[k] = seed
            _, errors[k, 0], errors[k, 1], solved[k] = anneal(
                joints, tool, limits, goals[k], settings, table, 0, descents, state, q[k]
            )


# --- reachability ------------------------------------------------------------------------------------

LATER_STARTS = 3  # times as many random starts before a place counts as out of reach
ATTEMPTS = 3  # at a direction, each from the configuration nearest to it
ANOTHER = 0.5  # rad or m: of those that differ by so much from the ones tried before


@compiled
def mark(axis, directions, cosine, reached):
    """Mark in reached (k,) the directions (k, 3) whose angle to axis (3,) has at least this cosine."""
    for k in range(directions.shape[0]):
        if axis[0] * directions[k, 0] + axis[1] * directions[k, 1] + axis[2] * directions[k, 2] >= cosine:
            reached[k] = True


@compiled
def nearest_apart(table, count, direction, tried):
    """Find the row of table (count, n + 3) whose axis (last three) is nearest to direction (3,).

    Rows that differ by less than ANOTHER from a row in tried (t,) are passed over. Returns (row, cosine
    of the angle); row -1 where none is left.
    """
    n = table.shape[1] - 3
    best, nearest = -1, -2.0
    for i in range(count):
        dot = table[i, n] * direction[0] + table[i, n + 1] * direction[1] + table[i, n + 2] * direction[2]
        if dot <= nearest:
            continue
        another = True
        for t in range(tried.shape[0]):
            gap = 0.0
            for j in range(n):
                gap = max(gap, abs(table[i, j] - table[tried[t], j]))
            another = another and gap > ANOTHER
        if another:
            best, nearest = i, dot
    return best, nearest


@compiled
def attainable(joints, tool, limits, settings, place, directions, cosine, starts, state, table, reached):
    """Mark in reached (k,) the directions (k, 3) that the tool axis can take with the tool at place (3,).

    cosine: of the angle by which a direction may be missed. Configurations at place are collected in
    table (starts + ATTEMPTS k, n + 3) with their tool axes: first from random starts; then each
    direction not met yet is tried from those with the nearest axes, as a small penalty beside the
    position, which a last descent makes exact again. Returns whether the place can be reached at all.
    """
    n = limits.shape[1]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    goal, q, middle = np.full(9, nan), np.empty(n), np.zeros(n)
    tried = np.empty((directions.shape[0], ATTEMPTS), dtype=np.int64)
    axis = frames[2 * joints.shape[0] + 1]
    least = settings[0] * settings[0]
    for i in range(n):
        if isfinite(limits[1, i] - limits[0, i]):
            middle[i] = 0.5 * (limits[0, i] + limits[1, i])
    reached[:] = False
    goal[:3] = place
    count = 0
    for start in range(LATER_STARTS * starts):
        if count > 0 and start >= starts:
            break
        perturb(middle, limits, 1.0, state, q)
        descend_lm(joints, tool, limits, goal, settings, FIRST_DAMPING, q, frames, work)
        if squared_errors(joints, frames, goal)[0] <= least:
            table[count, :n], table[count, n:] = q, axis
            mark(axis, directions, cosine, reached)
            count += 1
    for attempt in range(ATTEMPTS):
        for k in range(directions.shape[0]):
            if reached[k]:
                continue
            row, nearest = nearest_apart(table, count, directions[k], tried[k, :attempt])
            tried[k, attempt] = max(row, 0)
            if row < 0:
                continue
            q[:] = table[row, :n]
            goal[3:6] = directions[k]
            descend_lm(joints, tool, limits, goal, settings, FIRST_DAMPING, q, frames, work)
            goal[3:6] = nan
            descend_lm(joints, tool, limits, goal, settings, FIRST_DAMPING, q, frames, work)
            dot = axis[0] * directions[k, 0] + axis[1] * directions[k, 1] + axis[2] * directions[k, 2]
            if squared_errors(joints, frames, goal)[0] <= least and dot > nearest:
                table[count, :n], table[count, n:] = q, axis
                mark(axis, directions, cosine, reached)
                count += 1
    return count > 0


# --- paths -------------------------------------------------------------------------------------------

SMALLEST_SHARE = 1.0 / 4096.0  # of a step: where even this is no smooth motion, the branch has ended
BEND = 0.3  # a joint move may miss its linear prediction by this share and still be the same branch
DEMANDED = 3.0  # times the linear prediction: no joint move of a step needs more than this
LARGE_MOVE = 0.2  # rad or m: larger ones are looked at piece by piece
SAME_MOVE = 1e-6  # rad or m: largest moves that differ by less are equal, answers are no more exact
START_WEIGHT = 1e-2  # of the move from the seed to the start of a path, beside the sum of its moves
NEAR_BY = 0.05  # rad or m: solutions of neighbouring goals that differ by less are one branch


@compiled
def between(goal, start, share, out):
    """Write out (9,): the goal that lies share of the way from start (9,) to goal (9,)."""
    out[:] = goal
    for i in range(3):
        out[i] = start[i] + share * (goal[i] - start[i])
    if not isnan(goal[3]):
        size = 0.0
        for i in range(3, 6):
            out[i] = start[i] + share * (goal[i] - start[i])
            size += out[i] * out[i]
        size = 1.0 / sqrt(size) if size > 1e-12 else 1.0
        for i in range(3, 6):
            out[i] *= size


@compiled
def predict(joints, tool, limits, goal, settings, q, frames, work, step):
    """Write step (n,): the joint move from q (n,) towards goal by the linear model, limits kept.

    Frames are left at q. Returns (weighted error at q [m], largest joint move).
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, free = work[3 * n, :n], work[3 * n + 1, :n]
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    normal_equations(joints, frames, goal, settings[2], jac, hessian, gradient)
    for i in range(n):
        outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
        free[i] = 0.0 if outward else 1.0
    damped_step(hessian, gradient, free, 1e-8 * settings[2] * settings[2], factor, step)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(step[i]))
    return sqrt(position + settings[2] * settings[2] * direction), largest


@compiled
def follow(joints, tool, limits, goal, settings, q, work):
    """Move q (n,) to goal without leaving its branch, in place.

    The way to goal is cut until each piece moves the joints as its linear prediction says; where
    no piece is small enough, the branch ends and q stays at that point. Goals on the way need not
    be reachable (4 effective DoF): there the nearest configuration serves. work (3 n + 8,
    max(n, 9)) is scratch. Returns (solved, position error [m], direction error [rad]).
    """
    n, m = q.shape[0], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    base = 3 * n + 4  # descend_lm and predict use the rows before
    step, trial, start, target = work[base, :n], work[base + 1, :n], work[base + 2, :9], work[base + 3, :9]
    clip(q, limits)
    forward(joints, tool, q, frames)
    start[:] = goal
    start[:3] = frames[2 * m]
    if not isnan(goal[3]):
        start[3:6] = frames[2 * m + 1]
    done, share = 0.0, 1.0
    while done < 1.0:
        share = min(share, 1.0 - done)
        last = done + share >= 1.0
        between(goal, start, 1.0 if last else done + share, target)
        before, predicted = predict(joints, tool, limits, target, settings, q, frames, work, step)
        trial[:] = q
        descend_lm(joints, tool, limits, target, settings, 1e-8, trial, frames, work)
        position, direction = squared_errors(joints, frames, target)
        near = position <= settings[0] * settings[0] and direction <= settings[1] * settings[1]
        if not last:
            near = near or sqrt(position + settings[2] * settings[2] * direction) <= BEND * before
        missed = 0.0
        for i in range(n):
            missed = max(missed, abs(trial[i] - q[i] - step[i]))
        if near and missed <= BEND * predicted + 1e-6:
            q[:] = trial
            done += share
            share *= 2.0
            continue
        share *= 0.5
        if share < SMALLEST_SHARE:
            break
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return done >= 1.0, position_error, direction_error


@compiled
def is_smooth(joints, tool, limits, goal, settings, q, arrived, work):
    """Whether arrived (n,), a solution of goal, continues the branch of q (n,)."""
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    step = work[3 * n + 4, :n]
    _, predicted = predict(joints, tool, limits, goal, settings, q, frames, work, step)
    move = 0.0
    for i in range(n):
        move = max(move, abs(arrived[i] - q[i]))
    if move <= min(DEMANDED * predicted + 1e-6, LARGE_MOVE):
        return True
    followed = q.copy()
    if not follow(joints, tool, limits, goal, settings, followed, work)[0]:
        return False
    gap = 0.0
    for i in range(n):
        gap = max(gap, abs(followed[i] - arrived[i]))
    return gap <= DISTINCT


@compiled
def advance(joints, tool, limits, form, goal, settings, q, before, work):
    """Move q (n,) on to goal along its branch, in place: the nearest solution if it is a smooth step.

    before (n,): the configuration before q, or q itself. What is nearest is measured from where the
    motion would carry the arm, so that it passes straight through places where branches cross.
    Else the branch is followed piece by piece. Returns (solved, position error [m], direction error
    [rad]); not solved: the branch has ended and q is its last point on the way.
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    step, trial, ahead = work[3 * n + 4, :n], work[3 * n + 5, :n], work[3 * n + 6, :n]
    carried = 0.0
    for i in range(n):
        ahead[i] = 2.0 * q[i] - before[i]
        carried = max(carried, abs(q[i] - before[i]))
    clip(q, limits)
    clip(ahead, limits)
    if form[13, 0] != 0.0 and not isnan(goal[3]):
        solved, position_error, direction_error, _ = nearest_solution(
            joints, tool, limits, form, goal, settings, ahead, trial
        )
    else:
        trial[:] = ahead
        descend_lm(joints, tool, limits, goal, settings, 1e-8, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        solved = position <= settings[0] * settings[0] and direction <= settings[1] * settings[1]
        position_error, direction_error = goal_errors(joints, frames, goal)
    if solved:
        move, missed = 0.0, 0.0
        for i in range(n):
            move = max(move, abs(trial[i] - q[i]))
            missed = max(missed, abs(trial[i] - ahead[i]))
        smooth = missed <= BEND * carried
        if not smooth:
            _, predicted = predict(joints, tool, limits, goal, settings, q, frames, work, step)
            smooth = move <= min(DEMANDED * predicted + 1e-6, LARGE_MOVE)
        if smooth:
            q[:] = trial
            return True, position_error, direction_error
    return follow(joints, tool, limits, goal, settings, q, work)


@compiled
def advance_path(joints, tool, limits, form, goals, settings, order, q, path):
    """Advance along goals (N, 9) in the given order of row numbers from q (n,), writing path (N, n).

    Returns how many goals were met before the branch ended.
    """
    n = q.shape[0]
    work = np.empty((3 * n + 8, max(n, 9)))
    before, now = q.copy(), q.copy()
    for k in range(order.shape[0]):
        now[:] = q
        if not advance(joints, tool, limits, form, goals[order[k]], settings, q, before, work)[0]:
            return k
        path[order[k]] = q
        before[:] = now
    return order.shape[0]


@compiled
def largest_move(period, a, b):
    """Largest single joint move between configurations a and b (n,), whole periods left out."""
    most = 0.0
    for i in range(a.shape[0]):
        gap = b[i] - a[i]
        if period[i] > 0.0:
            gap -= period[i] * floor(gap / period[i] + 0.5)
        most = max(most, abs(gap))
    return most


@compiled
def formula_path(joints, tool, limits, period, form, goals, settings, seed, found, counts):
    """formula_solutions of every goal (N, 9) into found (N, 16, n) and counts (N,).

    Where none is near one of the goal before, a descent from that one looks for what the formula does
    not tell: the value of an angle that is free at just this goal.
    """
    n = limits.shape[1]
    q, work = np.empty(n), np.empty((3 * n + 4, max(n, 6)))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    for k in range(goals.shape[0]):
        counts[k] = formula_solutions(joints, tool, limits, period, form, goals[k], settings, seed, found[k])
        for j in range(counts[k - 1] if k > 0 else 0):
            nearest = inf
            for i in range(counts[k]):
                nearest = min(nearest, largest_move(period, found[k - 1, j], found[k, i]))
            if nearest <= NEAR_BY:
                continue
            q[:] = found[k - 1, j]
            descend_lm(joints, tool, limits, goals[k], settings, 1e-8, q, frames, work)
            position, direction = squared_errors(joints, frames, goals[k])
            if position <= settings[0] * settings[0] and direction <= settings[1] * settings[1]:
                counts[k] = add_distinct(period, found[k], counts[k], q)


@compiled
def best_branch(period, found, counts, seed, costs, came_from, choice):
    """Choose one row of found (N, k, n) per point so that the largest joint move is least.

    Dynamic programming twice: first for the least largest move, then for the least sum of moves
    among the paths that keep to it but for rounding, where a start nearer to seed (n,) outweighs
    START_WEIGHT times as much. counts (N,): rows in use, at least 1. costs (2, k) is scratch, came_from
    (N, k) too. Writes choice (N,) and returns the largest move.
    """
    points, rows = found.shape[0], found.shape[1]
    bound = inf
    for stage in range(2):
        for j in range(counts[0]):
            costs[0, j] = 0.0 if stage == 0 else START_WEIGHT * largest_move(period, seed, found[0, j])
        for k in range(1, points):
            for j in range(counts[k]):
                costs[1, j], came_from[k, j] = inf, 0
                for i in range(counts[k - 1]):
                    move = largest_move(period, found[k - 1, i], found[k, j])
                    if stage == 0:
                        cost = max(costs[0, i], move)
                    else:
                        cost = costs[0, i] + move if move <= bound else inf
                    if cost < costs[1, j]:
                        costs[1, j], came_from[k, j] = cost, i
            for j in range(rows):
                costs[0, j] = costs[1, j]
        last = points - 1
        best = 0
        for j in range(counts[last]):
            if costs[0, j] < costs[0, best]:
                best = j
        if stage == 0:
            bound = costs[0, best] + SAME_MOVE
    for k in range(points - 1, -1, -1):
        choice[k] = best
        best = came_from[k, best] if k > 0 else best
    return bound


# --- a method by itself ------------------------------------------------------------------------------


@compiled
def approach(joints, tool, limits, goal, settings, weights, starts, most, state, q):
    """Best effort from q (n,), in place: least position error first, then least direction error.

    From q and from starts - 1 random configurations, one descent after another with the falling
    weights [m/rad]: the penalty form of the lexicographic problem. While the position is not met,
    up to most starts. settings is used as scratch for the weight. Returns (position error [m],
    direction error [rad]).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    clip(q, limits)
    trial = q.copy()
    best_position, best_direction, least = inf, inf, inf
    enough = starts
    for start in range(most):
        if start >= enough and least <= settings[0]:
            break
        if start == starts:
            enough = 3 * starts
        if start > 0:
            perturb(q, limits, 1.0, state, trial)
        for k in range(weights.shape[0]):
            # Late starts go for the position alone, then turn the axis as far as that allows.
            settings[2] = weights[k] if start < starts else (k == weights.shape[0] - 1) * weights[k]
            descend(joints, tool, limits, goal, settings, trial, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        nearer = position < least - settings[0]
        if nearer or (position < least + settings[0] and direction < best_direction):
            best_position, best_direction = position, direction
            q[:] = trial
        least = min(least, position)
    return best_position, best_direction


# --- best effort -------------------------------------------------------------------------------------
#
# Position first, then direction: the penalty form (|position error|^2 + weight^2 angle^2) / 2 is
# minimised for falling weights [m/rad], a ladder, each minimum the start of the next. Where the goal
# is out of reach the residual does not vanish and Gauss-Newton crawls, so these descents use the
# exact Hessian: quadratic convergence, on a stretched arm too.

EQUAL = 1e-6  # m and rad: best efforts whose errors differ by less are equally good
SAME_BASIN = 0.02  # rad or m: two first descents that end this near go on to the same minimum
LOOKS, APART = 64, 0.3  # known configurations looked at; rad or m by which those taken differ
FULL_TURN = 2.0 * pi


@compiled
def curved_equations(joints, frames, goal, weight, rows, hessian, gradient, scale):
    """Exact Newton equations of (|position error|^2 + weight^2 angle^2) / 2 at frames.

    Writes hessian (n, n), lower half, gradient (n,) downhill and scale (n,), what Gauss and Newton
    would have on the diagonal. rows (m, 13) is scratch: of each joint the motion of the tool point (3)
    and axis (3), the cross products of the position error (3) and of the goal's direction (3, with its
    factor) with the axis, and the change of the cosine between the directions.
    """
    m = joints.shape[0]
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    ex, ey, ez = goal[0] - px, goal[1] - py, goal[2] - pz
    gx, gy, gz = goal[3], goal[4], goal[5]
    square = weight * weight
    first, second = 0.0, 0.0  # derivatives of angle^2 / 2 by the cosine
    if isnan(gx):
        gx, gy, gz, square = 0.0, 0.0, 0.0, 0.0
    else:
        angle = angle_between(frames[2 * m + 1], goal[3:6])
        if angle < 1e-3:
            first, second = -1.0 - angle * angle / 6.0, 1.0 / 3.0
        else:
            sine = max(sin(angle), 1e-6)
            first = -angle / sine
            second = (1.0 - angle * cos(angle) / sine) / (sine * sine)
    first *= square
    second *= square
    hessian[:, :] = 0.0
    gradient[:] = 0.0
    scale[:] = 0.0
    for k in range(m):
        ratio = joints[k, 8]
        ax, ay, az = ratio * frames[k, 0], ratio * frames[k, 1], ratio * frames[k, 2]
        a = rows[k]
        if joints[k, 6] != 0.0:
            a[0], a[1], a[2] = ax, ay, az
            a[3:13] = 0.0
        else:
            x, y, z = px - frames[m + k, 0], py - frames[m + k, 1], pz - frames[m + k, 2]
            a[0], a[1], a[2] = ay * z - az * y, az * x - ax * z, ax * y - ay * x
            a[3], a[4], a[5] = ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx
            a[6], a[7], a[8] = ey * az - ez * ay, ez * ax - ex * az, ex * ay - ey * ax
            a[9], a[10], a[11] = (
                first * (gy * az - gz * ay),
                first * (gz * ax - gx * az),
                first * (gx * ay - gy * ax),
            )
            a[12] = gx * a[3] + gy * a[4] + gz * a[5]
        i = int(joints[k, 7])
        gradient[i] += a[0] * ex + a[1] * ey + a[2] * ez - first * a[12]
        scale[i] += a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
        scale[i] += square * (a[3] * a[3] + a[4] * a[4] + a[5] * a[5])
        for base in range(k + 1):  # nearer the base: it turns what joint k moves
            b = rows[base]
            value = second * a[12] * b[12]
            for c in range(3):
                value += (b[c] - b[c + 6]) * a[c] + b[c + 9] * a[c + 3]
            j = int(joints[base, 7])
            if i == j and base != k:
                value *= 2.0
            hessian[max(i, j), min(i, j)] += value


@compiled
def definite_step(hessian, gradient, free, damping, scale, factor, step):
    """Solve (H + damping diag scale) step = gradient by Cholesky, frozen joints left out.

    Returns whether the damped Hessian is positive definite; only then is step a descent.
    """
    n = gradient.shape[0]
    for i in range(n):
        if free[i] == 0.0:
            step[i] = 0.0
            continue
        total = gradient[i]
        pivot = hessian[i, i] + damping * scale[i]
        least = 1e-15 * abs(pivot)
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
            pivot -= s * s
        if not pivot > least:
            return False
        factor[i, i] = 1.0 / sqrt(pivot)  # the inverse, as in damped_step
        step[i] = total * factor[i, i]
    for i in range(n - 1, -1, -1):
        if free[i] == 0.0:
            continue
        s = step[i]
        for k in range(i + 1, n):
            if free[k] != 0.0:
                s -= factor[k, i] * step[k]
        step[i] = s * factor[i, i]
    return True


@compiled
def bounded_step(limits, hessian, gradient, free, damping, scale, factor, right, step, q, trial):
    """Write trial (n,): q after the damped Newton step inside the limits; returns whether there is one.

    A joint that the step takes across a limit stops there, and the step of the others is found anew
    with that move given, so that they make up for it.
    """
    n = q.shape[0]
    for i in range(n):
        outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
        free[i] = 0.0 if outward or scale[i] < 1e-20 else 1.0
        trial[i] = q[i]
        right[i] = gradient[i]
    stopped = True
    while stopped:
        stopped = False
        if not definite_step(hessian, right, free, damping, scale, factor, step):
            return False
        for i in range(n):
            if free[i] == 0.0:
                continue
            stop = min(max(q[i] + step[i], limits[0, i]), limits[1, i])
            if stop != q[i] + step[i]:
                stopped = True
                free[i] = 0.0
                trial[i] = stop
                for j in range(n):
                    right[j] -= (stop - q[i]) * hessian[max(i, j), min(i, j)]
    for i in range(n):
        if free[i] != 0.0:
            trial[i] = q[i] + step[i]
    return True


@compiled
def descend_newton(joints, tool, limits, goal, weight, share, q, frames, work):
    """Bounded, damped Newton descent of (position error^2 + weight^2 direction error^2) / 2 from q, in place.

    weight [m/rad]. share: ends where a step would gain less than this share of the direction's part.
    frames are left at the returned q. work (2 n + 6 + m, max(n, 13)) is scratch.
    """
    n, m = q.shape[0], joints.shape[0]
    hessian, factor, rows = work[:n, :n], work[n : 2 * n, :n], work[2 * n + 6 : 2 * n + 6 + m]
    gradient, step, free = work[2 * n, :n], work[2 * n + 1, :n], work[2 * n + 2, :n]
    trial, scale, right = work[2 * n + 3, :n], work[2 * n + 4, :n], work[2 * n + 5, :n]
    clip(q, limits)
    forward(joints, tool, q, frames)
    position, direction = goal_errors(joints, frames, goal)
    damping, poor = 1e-3, 0
    for _ in range(60):
        cost = 0.5 * (position * position + weight * weight * direction * direction)
        least = share * weight * weight * direction * direction + 1e-15 * position * position
        curved_equations(joints, frames, goal, weight, rows, hessian, gradient, scale)
        gain, new = 0.0, inf
        for _ in range(40):
            if bounded_step(limits, hessian, gradient, free, damping, scale, factor, right, step, q, trial):
                largest, gain = 0.0, 0.0
                for i in range(n):
                    largest = max(largest, abs(trial[i] - q[i]))
                    gain += (trial[i] - q[i]) * gradient[i]
                if largest < 1e-12 or (gain <= least and damping < 1e-6):
                    break
                if largest > 1.0:
                    for i in range(n):
                        trial[i] = q[i] + (trial[i] - q[i]) / largest
                forward(joints, tool, trial, frames)
                position, direction = goal_errors(joints, frames, goal)
                new = 0.5 * (position * position + weight * weight * direction * direction)
                if new < cost:
                    break
            damping = max(3.0 * damping, 1e-13)
        if not new < cost:
            break
        q[:] = trial
        ratio = (cost - new) / gain
        if ratio > 0.5:
            damping = 0.02 * damping if damping > 1e-13 else 0.0
        elif ratio < 0.1:
            # What falls far short of the promise of an undamped step is rounding.
            poor += damping < 1e-6 and ratio < 1e-3
            damping = max(3.0 * damping, 1e-13)
        if poor == 2:
            break
    forward(joints, tool, q, frames)


@compiled
def refine(joints, tool, limits, goal, ladder, first, q, frames, work):
    """Descend from q (n,), in place, for each weight of ladder from number first on; returns both errors.

    The last descent is carried to the precision asked for, the others as far as the next one needs.
    """
    last = ladder.shape[0] - 1
    for k in range(first, ladder.shape[0]):
        share = 1e-8 if k == last else 1e-5
        descend_newton(joints, tool, limits, goal, ladder[k], share, q, frames, work)
    return goal_errors(joints, frames, goal)


@compiled
def refine_together(joints, tool, limits, goal, ladder, table, errors, count, frames, work):
    """As refine, for count rows of table (k, n) weight by weight; returns how many are left, all in errors.

    Rows are dropped that come to where another row is, and those that cannot become the best: the
    penalty form at a minimum rises as its weight falls no less than the direction's part allows, so the
    position error will not fall below sqrt(position^2 - weight^2 (pi^2 - direction^2)).
    """
    last = ladder.shape[0] - 1
    for k in range(ladder.shape[0]):
        least = inf
        for row in range(count):
            share = 1e-8 if k == last else 1e-5
            descend_newton(joints, tool, limits, goal, ladder[k], share, table[row], frames, work)
            errors[row, 0], errors[row, 1] = goal_errors(joints, frames, goal)
            least = min(least, errors[row, 0])
        if k == last:
            break
        square = 0.0 if isnan(goal[3]) else ladder[k] * ladder[k]
        kept = 0
        for row in range(count):
            position, direction = errors[row, 0], errors[row, 1]
            bound = position * position - square * (pi * pi - direction * direction)
            seen = bound > (least + EQUAL) ** 2
            for i in range(kept):
                seen = seen or apart(table[i], table[row]) < SAME_BASIN
            if not seen:
                table[kept] = table[row]
                errors[kept] = errors[row]
                kept += 1
        count = kept
    return count


@compiled
def apart(a, b):
    """Largest difference between two configurations (n,)."""
    gap = 0.0
    for i in range(a.shape[0]):
        gap = max(gap, abs(a[i] - b[i]))
    return gap


@compiled
def stretch_out(joints, tool, limits, goal, ladder, known, weight, given, table, errors):
    """Best efforts for a goal that is out of reach, from the configurations given (k, n) and known ones.

    known (n + 6, K): a table as tabulate writes it, with its weight; of the configurations nearest to the
    goal those are taken that are APART from each other. Fills table (k, n) and errors (k, 2) [m, rad] but for
    one row at most; returns the number of rows.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    distances = np.empty(known.shape[1])
    measure(known, goal, weight, distances)
    count = given.shape[0]
    table[:count] = given
    for _ in range(LOOKS):
        nearest = distances.argmin()
        distances[nearest] = inf
        q = table[count]
        q[:] = known[:n, nearest]
        new = True
        for k in range(given.shape[0], count):
            new = new and apart(table[k], q) > APART
        count += new
        if count == table.shape[0] - 1:
            break
    count = refine_together(joints, tool, limits, goal, ladder, table, errors, count, frames, work)
    table[count] = given[0]  # what is best already stays as it is
    errors[count, 0], errors[count, 1] = refine(
        joints, tool, limits, goal, ladder, ladder.shape[0] - 1, table[count], frames, work
    )
    return count + 1


@compiled
def choose(errors, table, count, seed):
    """Index of the best of count rows: least position error, then direction error, then nearest to seed.

    errors (k, 2) [m, rad], table (k, n). What differs by less than EQUAL counts as equal; nearness is the
    largest single joint move. -1 if there is no row.
    """
    nearest = inf
    for k in range(count):
        nearest = min(nearest, errors[k, 0])
    least_turn = inf
    for k in range(count):
        if errors[k, 0] <= nearest + EQUAL:
            least_turn = min(least_turn, errors[k, 1])
    best, least = -1, inf
    for k in range(count):
        if errors[k, 0] <= nearest + EQUAL and errors[k, 1] <= least_turn + EQUAL:
            move = apart(table[k], seed)
            if move < least:
                best, least = k, move
    return best


@compiled
def stay(joints, tool, limits, goal, seed, q):
    """Give back to joints of q (n,), in place, the values of seed that leave the errors as they are.

    So joints that do not matter stand still: the roll of a tool, or one axis of a straight wrist.
    """
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    forward(joints, tool, q, frames)
    position, direction = goal_errors(joints, frames, goal)
    for i in range(q.shape[0]):
        value = q[i]
        q[i] = min(max(seed[i], limits[0, i]), limits[1, i])
        forward(joints, tool, q, frames)
        new_position, new_direction = goal_errors(joints, frames, goal)
        if not (new_position <= position + 0.1 * EQUAL and new_direction <= direction + 0.1 * EQUAL):
            q[i] = value


@compiled
def scatter(joints, tool, limits, goal, wide, narrow, given, first, last, state, table, errors, marks, count):
    """Best efforts number first to last - 1, from the configurations given (k, n), then from random ones.

    Every start is refined with one of two ladders in turn: wide lets the direction lead at first,
    narrow the position; each finds optima that the other misses. A start whose first descent leads
    where another one led is dropped: marks (2, k, n) holds these places for either ladder. Fills table
    (k, n) and errors (k, 2) [m, rad] from row count on; returns the new count.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    if first == 0:  # what is best already stays as it is
        table[count] = given[0]
        errors[count, 0], errors[count, 1] = refine(
            joints, tool, limits, goal, narrow, narrow.shape[0] - 1, table[count], frames, work
        )
        count += 1
    for start in range(first, last):
        side = start % 2
        q = table[count]
        if start < 2 * given.shape[0]:
            q[:] = given[start // 2]
        else:
            perturb(given[0], limits, 1.0, state, q)
        ladder = wide if side == 0 else narrow
        descend_newton(joints, tool, limits, goal, ladder[0], 1e-5, q, frames, work)
        marks[side, start // 2] = q
        seen = False
        for k in range(start // 2):
            seen = seen or apart(marks[side, k], q) < SAME_BASIN
        if seen:
            continue
        errors[count, 0], errors[count, 1] = refine(joints, tool, limits, goal, ladder, 1, q, frames, work)
        count += 1
    return count


@compiled
def binding(limits, i):
    """Whether joint i has less than a whole turn, so that its limits can stop it."""
    return limits[1, i] - limits[0, i] < FULL_TURN


@compiled
def turn_back(limits, period, seed, table, count):
    """Turn the joints of count rows of table (k, n) into the limits again, nearest to seed (n,)."""
    for k in range(count):
        for i in range(seed.shape[0]):
            if period[i] > 0.0 and not binding(limits, i):
                table[k, i] = nearest_turn(table[k, i], seed[i], limits[0, i], limits[1, i])


# On arms whose axes 2, 3, 4 are parallel, joints 1 and 5 settle the distance along u, and joints 2, 3, 4
# work in a plane: points there are complex numbers, and the chain is
# target = e^(i a2) (l1 + e^(i a3) (l2 + e^(i a4) end)), theta = a2 + a3 + a4 turning the tool axis.


@compiled
def plane_axes(u, plane):
    """Write plane (2, 3): unit axes that are right-handed with u (3,)."""
    k = 0
    for i in range(1, 3):
        if abs(u[i]) < abs(u[k]):
            k = i
    size = 1.0 / sqrt(1.0 - u[k] * u[k])
    for i in range(3):
        plane[0, i] = size * ((1.0 if i == k else 0.0) - u[k] * u[i])
    plane[1, 0] = u[1] * plane[0, 2] - u[2] * plane[0, 1]
    plane[1, 1] = u[2] * plane[0, 0] - u[0] * plane[0, 2]
    plane[1, 2] = u[0] * plane[0, 1] - u[1] * plane[0, 0]


@compiled
def in_plane(plane, x, y, z):
    """The part of (x, y, z) in the plane, as a complex number."""
    return complex(
        plane[0, 0] * x + plane[0, 1] * y + plane[0, 2] * z,
        plane[1, 0] * x + plane[1, 1] * y + plane[1, 2] * z,
    )


@compiled
def phasor(angle):
    """e^(i angle)."""
    return complex(cos(angle), sin(angle))


@compiled
def phase(z):
    """Angle of a complex number."""
    return atan2(z.imag, z.real)


@compiled
def fold(a, b, target, side):
    """(reached, alpha, beta) with e^(i alpha) (a + e^(i beta) b) = target: a triangle of two links.

    side 0 or 1: elbow. Where both elbows are the same, side 1 is not reached.
    """
    most = abs(a) * abs(b)
    if most < 1e-12:
        return False, 0.0, 0.0
    square = target.real * target.real + target.imag * target.imag
    square -= a.real * a.real + a.imag * a.imag + b.real * b.real + b.imag * b.imag
    ratio = 0.5 * square / most
    if abs(ratio) > 1.0 + 1e-9 or (side == 1 and abs(ratio) >= 1.0):
        return False, 0.0, 0.0
    bend = acos(min(max(ratio, -1.0), 1.0))
    beta = (bend if side == 0 else -bend) + phase(a) - phase(b)
    return True, phase(target) - phase(a + b * phasor(beta)), beta


@compiled
def turns_of(form, limits, seed, a2, a3, a4, q):
    """Write q[1:4] from the planar angles, each turned nearest to seed; returns whether all are in limits."""
    q[1] = nearest_turn(a2, seed[1], limits[0, 1], limits[1, 1])
    q[2] = nearest_turn(form[13, 1] * a3, seed[2], limits[0, 2], limits[1, 2])
    q[3] = nearest_turn(form[13, 2] * a4, seed[3], limits[0, 3], limits[1, 3])
    return not (isnan(q[1]) or isnan(q[2]) or isnan(q[3]))


@compiled
def planar_sign(form, joint):
    """1 or -1: the sense in which joint 1, 2 or 3 turns in the plane."""
    return 1.0 if joint == 1 else form[13, joint - 1]


@compiled
def turned_nearest(form, limits, l1, l2, end, target, theta0, seed, trial, q):
    """Reach target exactly with theta nearest to theta0, in limits; writes q[1:4].

    Theta moves along the self-motion of the planar chain. It is best at theta0, or at an end of a
    feasible stretch: a joint at a limit, or the elbow straight or folded. Each of these leaves a
    triangle of two links. Returns the distance of theta from theta0, inf if there is none.
    """
    best, least = inf, inf
    for case in range(9):
        joint, angle = 0, 0.0
        if 1 <= case <= 6:
            joint = (case + 1) // 2
            if not binding(limits, joint):
                continue
            angle = planar_sign(form, joint) * limits[case % 2, joint]
        elif case > 6:
            joint, angle = 2, phase(l1) - phase(l2) + (pi if case == 8 else 0.0)
        for side in range(2):
            if joint == 0:
                reached, a2, a3 = fold(l1, l2, target - phasor(theta0) * end, side)
                a4 = theta0 - a2 - a3
            elif joint == 1:
                a2 = angle
                reached, a3, a4 = fold(l2, end, target * phasor(-a2) - l1, side)
            elif joint == 2:
                a3 = angle
                reached, a2, a4 = fold(l1 + phasor(a3) * l2, phasor(a3) * end, target, side)
            else:
                a4 = angle
                reached, a2, a3 = fold(l1, l2 + phasor(a4) * end, target, side)
            gap = a2 + a3 + a4 - theta0
            gap = abs(gap - FULL_TURN * floor(gap / FULL_TURN + 0.5))
            if not reached or gap > best + 1e-9 or not turns_of(form, limits, seed, a2, a3, a4, trial):
                continue
            move = max(abs(trial[1] - seed[1]), abs(trial[2] - seed[2]), abs(trial[3] - seed[3]))
            if gap < best - 1e-9 or move < least:
                best, least = min(gap, best), move
                q[1], q[2], q[3] = trial[1], trial[2], trial[3]
        if case == 0 and best < inf:
            break
    return best


@compiled
def planar_problem(form, goal, plane, q1, q5):
    """Joints 1 and 5 given: (target, end, turn, along, off) of what is left for joints 2, 3, 4.

    target and end: complex. turn: complex, its phase is the theta that serves the direction best; along +
    |turn| cos(theta - phase) is the cosine of the direction error. off [m]: what joints 1 and 5 miss
    along u. A goal without a direction has turn and along 0.
    """
    w1, r1, u, r2, r4 = form[0], form[1], form[2], form[3], form[4]
    w5, r5, p0, d0 = form[8], form[9], form[10], form[11]
    c1, s1, c5, s5 = cos(q1), sin(q1), cos(q5), sin(q5)
    px, py, pz = turned(w1, c1, -s1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    px, py, pz = px + r1[0], py + r1[1], pz + r1[2]
    ex, ey, ez = turned(w5, c5, s5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    ex, ey, ez = ex + r5[0], ey + r5[1], ez + r5[2]
    target = in_plane(plane, px - r2[0], py - r2[1], pz - r2[2])
    end = in_plane(plane, ex - r4[0], ey - r4[1], ez - r4[2])
    off = u[0] * (px - ex) + u[1] * (py - ey) + u[2] * (pz - ez)
    if isnan(goal[3]):
        return target, end, 0.0j, 0.0, off
    dx, dy, dz = turned(w1, c1, -s1, goal[3], goal[4], goal[5])
    vx, vy, vz = turned(w5, c5, s5, d0[0], d0[1], d0[2])
    turn = in_plane(plane, dx, dy, dz) * in_plane(plane, vx, vy, vz).conjugate()
    along = (u[0] * vx + u[1] * vy + u[2] * vz) * (u[0] * dx + u[1] * dy + u[2] * dz)
    return target, end, turn, along, off


@compiled
def first_angles(form, goal, q5, roots):
    """Angles of joint 1 that bring the goal to the plane of joints 2, 3, 4, or nearest to it, with q5 given.

    Writes roots (2,) and returns (count, whether the plane is met); count 0 where the goal is on axis 1.
    """
    w1, r1, u, w5, r5, p0 = form[0], form[1], form[2], form[8], form[9], form[10]
    a, b, c = harmonics(w1, u[0], u[1], u[2], goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    ex, ey, ez = turned(w5, cos(q5), sin(q5), p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    height = u[0] * (ex + r5[0] - r1[0]) + u[1] * (ey + r5[1] - r1[1]) + u[2] * (ez + r5[2] - r1[2])
    length = sqrt(b * b + c * c)
    if length < 1e-9 * form[12, 2]:
        return 0, False
    ratio = (height - a) / length
    if abs(ratio) >= 1.0:
        roots[0] = atan2(c, b) if ratio > 0.0 else atan2(-c, -b)
        return 1, abs(ratio) < 1.0 + 1e-9
    bend = acos(ratio)
    roots[0], roots[1] = atan2(c, b) + bend, atan2(c, b) - bend
    return 2, True


@compiled
def straightest(form, limits, goal, plane, l1, l2, q5, side, seed, bound, scratch, q):
    """Position exact, q5 given, joint 1 on its root number side: the least direction error, as a chord.

    Writes q (5,); inf where that cannot be. Chords above bound are not worked out but bounded from below.
    scratch (2, 5).
    """
    roots, trial = scratch[0], scratch[1]
    q5 = min(max(q5, limits[0, 4]), limits[1, 4])
    count, met = first_angles(form, goal, q5, roots)
    if not met or side >= count:
        return inf
    q[0] = nearest_turn(roots[side], seed[0], limits[0, 0], limits[1, 0])
    q[4] = q5
    if isnan(q[0]):
        return inf
    target, end, turn, along, _ = planar_problem(form, goal, plane, q[0], q5)
    if abs(target) > abs(l1) + abs(l2) + abs(end) + 1e-9:
        return inf
    if isnan(goal[3]):
        theta0 = seed[1] + form[13, 1] * seed[2] + form[13, 2] * seed[3]
        along = 1.0
    else:
        theta0 = phase(turn)
        chord = sqrt(max(2.0 - 2.0 * (along + abs(turn)), 0.0))
        if chord > bound:
            return chord
    gap = turned_nearest(form, limits, l1, l2, end, target, theta0, seed, trial, q)
    half = sin(0.5 * min(gap, pi))
    return (
        sqrt(max(2.0 - 2.0 * (along + abs(turn)), 0.0) + 4.0 * abs(turn) * half * half) if gap < inf else inf
    )


@compiled
def stretched(form, limits, goal, plane, l1, l2, q1, q5, seed, scratch, table, errors, count, most):
    """Configurations with joints 1 and 5 given whose tool point is nearest to the goal.

    Where the distance has a minimum, each joint is at a limit or free, and the rigid pieces between
    free joints point along the line to the target: 27 cases and the senses of the pieces. The best
    go into table (k, 5) below row most, sorted by errors (k, 2) [m]; returns the new count.
    """
    target, end, _, _, off = planar_problem(form, goal, plane, q1, q5)
    angles, trial = scratch[0], scratch[1]
    for case in range(27):
        free, usable = 0, True
        for j in range(3):
            at = case // 3**j % 3  # 0 free, 1 lower limit, 2 upper limit
            free += at == 0
            usable = usable and (at == 0 or binding(limits, j + 1))
            angles[j] = planar_sign(form, j + 1) * limits[at - 1, j + 1] if at > 0 else 0.0
        if not usable:
            continue
        for senses in range(1 << free):
            heading, tip, first, piece, piece_turn = 0.0, 0.0j, -1, 0.0j, 0.0
            left, reach, toward = senses, 0.0, 1.0 + 0.0j
            for j in range(4):
                if j == 3 or case // 3**j % 3 == 0:
                    if first >= 0:  # the piece that began at the free joint first ends here
                        sense = 1.0 if left & 1 else -1.0
                        left >>= 1
                        reach += sense * abs(piece)
                        angles[first] = phase(sense * toward) - phase(piece) - heading
                        heading += angles[first] + piece_turn
                    elif j < 3 and abs(target - tip) > 1e-12:
                        toward = (target - tip) / abs(target - tip)
                    if j < 3:
                        first, piece, piece_turn = j, 0.0j, 0.0
                if j == 3:
                    break
                link = l1 if j == 0 else l2 if j == 1 else end
                if first < 0:
                    heading += angles[j]
                    tip += phasor(heading) * link
                else:
                    piece_turn += angles[j] if j > first else 0.0
                    piece += phasor(piece_turn) * link
            missed = abs(abs(target - tip) - reach)
            missed = sqrt(missed * missed + off * off)
            if count == most and missed >= errors[most - 1, 0]:
                continue
            if not turns_of(form, limits, seed, angles[0], angles[1], angles[2], trial):
                continue
            k = min(count, most - 1)
            while k > 0 and errors[k - 1, 0] > missed:
                table[k] = table[k - 1]
                errors[k, 0] = errors[k - 1, 0]
                k -= 1
            errors[k, 0] = missed
            table[k, 0], table[k, 4] = q1, q5
            table[k, 1], table[k, 2], table[k, 3] = trial[1], trial[2], trial[3]
            count = min(count + 1, most)
    return count


SCAN = 48  # values of q5 that are tried, evenly spread
CANDIDATES = 6  # best of them that are refined
SCAN_MARGIN = 0.3  # a scanned direction error that exceeds the best by more cannot become the best
EDGE_MARGIN = 1.0  # likewise next to where the position goes out of reach: errors fall like a root there


@compiled
def scan_roll(form, limits, goal, plane, l1, l2, seed, values, scratch, table):
    """Position exact: the q5 whose direction error is least, by a scan over its range.

    Writes up to CANDIDATES local minima of the scan into table (k, 5), the best first; returns how many.
    values (2, SCAN) is scratch. Where q5 is free (the tool axis is axis 5) it is seed's, and both roots of
    joint 1 are exact answers.
    """
    low, high = limits[0, 4], limits[1, 4]
    steps = SCAN
    if form[12, 1] != 0.0:
        low, high, steps = seed[4], seed[4], 1
    elif not binding(limits, 4):
        low, high = seed[4] - pi, seed[4] + pi
    spacing = (high - low) / max(steps - 1, 1)
    best = inf
    for k in range(steps):
        for side in range(2):
            values[side, k] = straightest(
                form, limits, goal, plane, l1, l2, low + spacing * k, side, seed, best + EDGE_MARGIN,
                scratch, table[0],
            )  # fmt: skip
            best = min(best, values[side, k])
    count = 0
    while count < CANDIDATES:
        least, side, at = inf, 0, 0
        for i in range(2):
            for k in range(steps):
                falls = values[i, k] < least
                falls = falls and (k == 0 or values[i, k - 1] >= values[i, k])
                if falls and (k == steps - 1 or values[i, k + 1] >= values[i, k]):
                    least, side, at = values[i, k], i, k
        if least > best + EDGE_MARGIN or least == inf:
            break
        q5, chord = low + spacing * at, least
        for sense in (-1, 1):
            if 0 <= at + sense < steps and values[side, at + sense] == inf:
                step = 0.5 * sense * spacing
                for _ in range(8):
                    new = straightest(
                        form, limits, goal, plane, l1, l2, q5 + step, side, seed, inf, scratch, table[count]
                    )
                    if new <= chord:
                        q5, chord = q5 + step, new
                    step *= 0.5
            # Take away the valley of this minimum, so that the next one is another's.
            k, value = at + sense, least
            while 0 <= k < steps and value <= values[side, k] < inf:
                value = values[side, k]
                values[side, k] = FULL_TURN
                k += sense
        values[side, at] = FULL_TURN
        if chord <= best + SCAN_MARGIN:
            straightest(form, limits, goal, plane, l1, l2, q5, side, seed, inf, scratch, table[count])
            best = min(best, chord)
            count += 1
    return count


@compiled
def nearest_places(form, limits, goal, plane, l1, l2, seed, scratch, table, errors):
    """Configurations whose tool point is near a goal out of reach, for a few values of joints 1 and 5.

    Joint 1 turns the plane towards the goal or stops at a limit; q5, where it matters, takes three values
    evenly spread from seed's. Fills table (k, 5) and errors (k, 2) [m]; returns the number of rows.
    """
    roots = np.empty(4)
    count = 0
    for third in range(1 if form[12, 1] != 0.0 else 3):
        q5 = nearest_turn(seed[4] + third * FULL_TURN / 3.0, seed[4], limits[0, 4], limits[1, 4])
        if isnan(q5):
            continue
        choices, _ = first_angles(form, goal, q5, roots)
        if choices == 0:
            choices, roots[0] = 1, seed[0]
        if binding(limits, 0):
            roots[choices], roots[choices + 1] = limits[0, 0], limits[1, 0]
            choices += 2
        rows, misses, part = table[count:], errors[count:], 0
        for k in range(choices):
            q1 = nearest_turn(roots[k], seed[0], limits[0, 0], limits[1, 0])
            if not isnan(q1):
                part = stretched(
                    form, limits, goal, plane, l1, l2, q1, q5, seed, scratch, rows, misses, part, 4
                )
        count += part
    return count


@compiled
def parallel_effort(joints, tool, limits, opened, period, form, goal, narrow, seed, found, table, errors):
    """Best efforts of an arm whose axes 2, 3, 4 are parallel, by formula and then refined on the true model.

    opened (2, 5): the limits, infinite where a joint turns all the way round. found (5,): one more place
    to start from. Fills table (k, 5) and errors (k, 2) [m, rad]; returns (number of rows, whether the
    formula reaches the position). Where the tool axis is axis 5 and the geometry exact, that is proof
    either way.
    """
    frames = np.empty((13, 3))
    work = np.empty((21, 13))
    scratch = np.empty((2, 5))
    near = seed.copy()
    clip(near, limits)
    plane = np.empty((2, 3))
    plane_axes(form[2], plane)
    l1 = in_plane(plane, form[5, 0], form[5, 1], form[5, 2])
    l2 = in_plane(plane, form[6, 0], form[6, 1], form[6, 2])
    kept = scan_roll(form, limits, goal, plane, l1, l2, near, np.empty((2, SCAN)), scratch, table)
    in_place = kept > 0
    if in_place:
        settled = form[12, 1] != 0.0  # what is exact already stays in the table, beside what is refined
        for k in range(kept):
            forward(joints, tool, table[k], frames)
            errors[k, 0], errors[k, 1] = goal_errors(joints, frames, goal)
            settled = settled and errors[k, 0] < EXACT
        count = kept if settled else 2 * kept
        table[kept:count] = table[: count - kept]
    else:
        settled = False
        count = nearest_places(form, limits, goal, plane, l1, l2, near, scratch, table, errors)
    if not settled:
        table[count] = found
        count = kept + refine_together(
            joints, tool, opened, goal, narrow, table[kept:], errors[kept:], count + 1 - kept, frames, work
        )
        table[count] = near  # what is best already stays as it is: no weights that would move it
        errors[count, 0], errors[count, 1] = refine(
            joints, tool, opened, goal, narrow, narrow.shape[0] - 1, table[count], frames, work
        )
        count += 1
    turn_back(limits, period, near, table, count)
    return count, in_place


# --- lateral -----------------------------------------------------------------------------------------


@compiled
def serve_lateral(joints, tool, limits, goal, roll, seed, q):
    """Turn joint roll of q (n,), in place, so that the tool's lateral axis comes nearest to the goal's.

    roll: the last joint, whose axis is the tool axis, so that nothing else moves; -1 where there is none.
    Of whole turns the nearest to seed (n,) is taken; a limit in the way leaves the better end. Returns the
    angle [rad] that remains between the lateral axes.
    """
    m = joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    forward(joints, tool, q, frames)
    if roll >= 0:
        lateral = frames[2 * m + 2]
        _, b, c = harmonics(frames[m - 1], lateral[0], lateral[1], lateral[2], goal[6], goal[7], goal[8])
        if b * b + c * c > 1e-18:
            low, high = limits[0, roll], limits[1, roll]
            wanted = q[roll] + atan2(c, b)
            turned_there = nearest_turn(wanted, seed[roll], low, high)
            if isnan(turned_there):
                turned_there = low if cos(low - wanted) > cos(high - wanted) else high
            q[roll] = turned_there
            forward(joints, tool, q, frames)
    return angle_between(frames[2 * m + 2], goal[6:9])
