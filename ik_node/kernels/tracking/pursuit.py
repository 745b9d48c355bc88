# SPDX-License-Identifier: Apache-2.0
"""One step after a moving target: how it moves, its demand, the calm point, the joints.

See control/motion/goal_stream.py and control/motion/pursuit.py.

States are (3, n): positions, velocities and accelerations of joints, which are advanced in place. limits
(3, n): of velocity, acceleration and jerk. dt [s]: the step.
"""

from math import exp, inf, sqrt

from ..runtime.compiled import compiled

LEAST_SPREAD = 1e-9  # of three times or more; it is 0 where only two differ, and 0.02 for four even ones
MEMORY = 0.7  # [s] for which the largest velocity and acceleration of the target count
SMOOTHING = 0.04  # [s] of its acceleration
DRIFT, CALM = 2.0, 0.3  # [1/s] of the distance, and share of the velocity limits: speed of the calm point
STEADYING = 8.0  # [1/s] two poles with which the calm point takes that speed
KEPT = 0.9  # largest share after a hit
NEAR = 0.3  # [s] for which the largest distance between the target and the calm point counts
BLENDING = 0.4  # share of the free acceleration, and of the jerk limit, that a change of the share may use
CROSSING = 0.6  # share of the free acceleration that the rate of the share may use
LEAST_ROOM, MOST_ROOM = 0.1, 0.9  # shares of the limits that count as free for it
SMALLEST = 1e-3  # [rad or m] distance between target and calm point, for quotients
LACKING = 0.04  # [s] for which what was lacking counts
HIT = 0.15  # share of the acceleration limit that must be lacking for a limit to be hit: noise takes less
HALVINGS = 12  # for a jerk that stops a joint at a place


@compiled
def fit_parabola(times, places, parabola):
    """Fit parabolas to places (k, n) at times (k,) by least squares; return whether the times allow it.

    parabola (3, n): place and rate at the last of the times, and half the bend.
    """
    last, span = times.shape[0] - 1, times[-1] - times[0]
    s1 = s2 = s3 = s4 = 0.0  # sums of powers of the times, in spans from the last
    for k in range(last):
        t = (times[k] - times[last]) / span
        s1, s2, s3, s4 = s1 + t, s2 + t * t, s3 + t * t * t, s4 + t * t * t * t
    s0 = last + 1.0
    # the normal equations by Cholesky's method without roots
    l1, l2 = s1 / s0, s2 / s0
    d1 = s2 - l1 * s1
    l3 = (s3 - l1 * s2) / d1
    d2 = s4 - l2 * s2 - l3 * l3 * d1
    if not d2 > LEAST_SPREAD:
        return False
    for i in range(places.shape[1]):
        r0 = r1 = r2 = 0.0
        for k in range(last):
            t, y = (times[k] - times[last]) / span, places[k, i] - places[last, i]
            r0, r1, r2 = r0 + y, r1 + t * y, r2 + t * t * y
        r1 -= l1 * r0
        bend = (r2 - l2 * r0 - l3 * r1) / d2
        rate = r1 / d1 - l3 * bend
        parabola[0, i] = places[last, i] + r0 / s0 - l1 * rate - l2 * bend
        parabola[1, i] = rate / span
        parabola[2, i] = bend / (span * span)
    return True


@compiled
def note_demand(target, limits, peaks, smooth, dt):
    """Note what following target needs as shares of the limits, and return the largest, and its speed.

    peaks (2, n): of velocity and acceleration; they decay. smooth (n,): the acceleration, smoothed.
    """
    decay, follow = exp(-dt / MEMORY), min(1.0, dt / SMOOTHING)
    worst = square = 0.0
    for i in range(target.shape[1]):
        speed, hard = abs(target[1, i]) / limits[0, i], abs(target[2, i]) / limits[1, i]
        peaks[0, i] = max(speed, decay * peaks[0, i])
        peaks[1, i] = max(hard, decay * peaks[1, i])
        change = follow * (target[2, i] - smooth[i])
        smooth[i] += change
        lasting = max(abs(smooth[i]) / limits[1, i], abs(change) / (limits[2, i] * dt))
        worst = max(worst, speed, lasting)
        square += speed * speed
    return worst, sqrt(square)


@compiled
def drift(calm, target, limits, share, dt):
    """Move the calm point on: straight to the target, slowly. The joints do 1 - share of its motion."""
    n = calm.shape[1]
    scale = 1.0
    for i in range(n):
        wish, most = DRIFT * abs(target[0, i] - calm[0, i]), CALM * limits[0, i]
        if wish > most:
            scale = min(scale, most / wish)
    for i in range(n):
        velocity = scale * DRIFT * (target[0, i] - calm[0, i])
        jerk = STEADYING**2 * (velocity - calm[1, i]) - 2.0 * STEADYING * calm[2, i]
        most = limits[2, i] / (1.0 - min(share, KEPT))
        _advance(calm, i, max(-most, min(jerk, most)), dt)


@compiled
def blend_limits(calm, target, limits, peaks, size, share, dt):
    """Find how fast the share may change: its velocity, acceleration and jerk limits, [1/s] and so on.

    peaks: see note_demand. size (n,): the largest distances lately between target and calm point.
    """
    decay = exp(-dt / NEAR)
    speed = brake = jerk = inf
    for i in range(calm.shape[1]):
        size[i] = max(abs(target[0, i] - calm[0, i]), SMALLEST, decay * size[i])
        fast = share * peaks[0, i] + (1.0 - share) * abs(calm[1, i]) / limits[0, i]
        hard = share * peaks[1, i] + (1.0 - share) * abs(calm[2, i]) / limits[1, i]
        free = limits[1, i] * max(LEAST_ROOM, min(1.0 - hard, MOST_ROOM))
        crossing = max(2.0 * abs(target[1, i] - calm[1, i]), SMALLEST)
        speed = min(speed, limits[0, i] * max(LEAST_ROOM, min(1.0 - fast, MOST_ROOM)) / size[i])
        speed = min(speed, CROSSING * free / crossing)
        brake = min(brake, BLENDING * free / size[i])
        jerk = min(jerk, BLENDING * limits[2, i] / size[i])
    return speed, brake, jerk


@compiled
def chase(now, calm, target, limits, turns, blend, pole, lack, dt):
    """Move the joints on towards the blend of calm and target, with three poles at -pole [1/s].

    calm, target: where these are after the step. turns (2, n): the lowest and highest positions that the
    joints should not pass. blend (3,): the share, its rate and the rate of that. lack (n,): acceleration that
    limits took away lately. Return whether a limit was hit. There is no lag behind a motion of constant
    acceleration.
    """
    k, rate, bend = blend[0], blend[1], blend[2]
    fade = exp(-dt / LACKING)
    hit = False
    for i in range(now.shape[1]):
        gap, fast, hard = target[0, i] - calm[0, i], target[1, i] - calm[1, i], target[2, i] - calm[2, i]
        acceleration = calm[2, i] + k * hard + 2.0 * rate * fast + bend * gap
        velocity = calm[1, i] + k * fast + rate * gap - acceleration * dt
        position = calm[0, i] + k * gap - (velocity + 0.5 * acceleration * dt) * dt
        asked = (
            pole**3 * (position - now[0, i])
            + 3.0 * pole**2 * (velocity - now[1, i])
            + 3.0 * pole * (acceleration - now[2, i])
        )
        jerk = _kept(now, i, asked, limits, dt)
        lack[i] = fade * lack[i] + (asked - jerk) * dt
        jerk = _stopping(now, i, jerk, limits, turns[1, i], 1.0, dt)
        jerk = _stopping(now, i, jerk, limits, -turns[0, i], -1.0, dt)
        _advance(now, i, jerk, dt)
        hit = hit or abs(lack[i]) > HIT * limits[1, i]
    return hit


@compiled
def _kept(now, i, jerk, limits, dt):
    """Return jerk of joint i, changed where a limit would be exceeded in the next dt, or while it ends."""
    fastest, hardest, most = limits[0, i], limits[1, i], limits[2, i]
    # The largest acceleration after dt that can end, at the jerk limit, before the speed exceeds its limit:
    # v + (a + x) dt / 2 + x^2 / (2 j) = limit, solved for x.
    half = 0.5 * dt * most
    fastest = max(fastest - most * dt**2 / 8.0, 0.9 * fastest)  # within dt it may be faster
    coming = now[1, i] + 0.5 * dt * now[2, i]
    high = min(hardest, sqrt(max(half**2 + 2.0 * most * (fastest - coming), 0.0)) - half)
    low = min(hardest, sqrt(max(half**2 + 2.0 * most * (fastest + coming), 0.0)) - half)
    jerk = max(-most, min(jerk, most))
    acceleration = min(max(now[2, i] + jerk * dt, -low), high)
    return max(-most, min((acceleration - now[2, i]) / dt, most))


@compiled
def _stopping(now, i, jerk, limits, end, sign, dt):
    """Return jerk of joint i, changed as little as needed for it to stop before end. sign: -1 mirrors."""
    hardest, most = limits[1, i], limits[2, i]
    position, velocity, acceleration = sign * now[0, i], sign * now[1, i], sign * now[2, i]
    jerk *= sign
    if position < end < _turn(position, velocity, acceleration, jerk, hardest, most, dt):
        least = max(-most, min(jerk, (-hardest - acceleration) / dt))
        low, high = least, jerk
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if _turn(position, velocity, acceleration, middle, hardest, most, dt) > end:
                high = middle
            else:
                low = middle
        jerk = low
    return sign * jerk


@compiled
def _turn(position, velocity, acceleration, jerk, hardest, most, dt):
    """Return the largest position if a joint, after dt of a jerk, brakes as hard as the limits allow."""
    position += (velocity + (acceleration / 2.0 + jerk * (dt / 6.0)) * dt) * dt
    velocity += (acceleration + jerk * (dt / 2.0)) * dt
    acceleration += jerk * dt
    square = acceleration * acceleration + 2.0 * most * velocity
    if square <= 0.0 or acceleration + sqrt(square) <= 0.0:
        return position
    time = (acceleration + sqrt(square)) / most  # to rest at the jerk limit
    hard = (acceleration + hardest) / most  # to the acceleration limit
    at_limit = time > hard
    if at_limit:
        time = hard
    position += (velocity + (acceleration / 2.0 - most * (time / 6.0)) * time) * time
    velocity += (acceleration - most * (time / 2.0)) * time
    if at_limit:
        position += velocity * velocity / (2.0 * hardest)
    return position


@compiled
def _advance(state, i, jerk, dt):
    """Move joint i on by dt of constant jerk."""
    position, velocity, acceleration = state[0, i], state[1, i], state[2, i]
    state[0, i] = position + (velocity + (acceleration / 2.0 + jerk * (dt / 6.0)) * dt) * dt
    state[1, i] = velocity + (acceleration + jerk * (dt / 2.0)) * dt
    state[2, i] = acceleration + jerk * dt
