// SPDX-License-Identifier: Apache-2.0
// Joint positions of the arm @arm@ for a frame of the tool, best first, by @arm@_ik.h. Made by ik_export.
//
// The header solves for a position and the direction of the tool axis. Here the roll about that axis is compared,
// turned where a joint can turn it, and the direction is projected where the arm cannot take it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "@arm@_ik.h"

namespace @package@ {
using Vector = std::array<double, 3>;
using Joints = std::vector<double>;

constexpr std::size_t N = @ARM@_JOINTS;
constexpr double PI = 3.14159265358979323846, TURN = 2.0 * PI;
constexpr double EXACT = 1e-3;  // [rad] of the orientation up to which a frame is met

// The joint whose axis is the tool axis, and 1 or -1 as they point: it turns the tool and nothing else. -1: none.
constexpr int ROLL_JOINT = @roll_joint@;
constexpr double ROLL_SIGN = @roll_sign@;

// If axes 2, 3 and 4 are parallel and joint 5 is the roll joint, the tool stays in a plane that turns with joint 1:
// axis 1 and a point on it, the normal of the plane at zero, and along it the height of the tool above that point
// and the component of the tool axis, which neither of the joints 2 to 5 changes. All in the base frame.
constexpr bool PLANAR = @planar@;
constexpr Vector AXIS{ @axis@ }, POINT{ @point@ }, NORMAL{ @normal@ };
constexpr double HEIGHT = @height@, SLOPE = @slope@;

struct Frame {  // of the tool in the base frame; lateral is a unit vector across the tool axis
  Vector point, axis, lateral;
};

struct Answer {
  Joints q;
  double turned;  // [rad] from the orientation that is wanted
  double moved;   // largest move of a joint from the seed
};

inline double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

inline Vector cross(const Vector& a, const Vector& b) {
  return { a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0] };
}

inline Vector sum(double s, const Vector& a, double t, const Vector& b) {  // s a + t b
  return { s * a[0] + t * b[0], s * a[1] + t * b[1], s * a[2] + t * b[2] };
}

inline double bounded_acos(double cosine) {
  return std::acos(std::max(-1.0, std::min(1.0, cosine)));
}

// Angle of the rotation from one frame to the other: the trace of its matrix is 1 + 2 cos.
inline double angle_between(const Frame& a, const Frame& b) {
  const double third = dot(cross(a.axis, a.lateral), cross(b.axis, b.lateral));
  return bounded_acos((dot(a.axis, b.axis) + dot(a.lateral, b.lateral) + third - 1.0) / 2.0);
}

inline Frame forward(const Joints& q) {
  Frame tool;
  @arm@_forward(q.data(), tool.point.data(), tool.axis.data(), tool.lateral.data());
  return tool;
}

// The value nearest to `near` that is whole turns from `value` and within the limits; without one, the nearer limit.
inline double turn_within(double value, double near, double low, double high) {
  value += TURN * std::round((near - value) / TURN);
  if (value > high)
    value -= TURN * std::ceil((value - high) / TURN);
  if (value < low)
    value += TURN * std::ceil((low - value) / TURN);
  if (value <= high)
    return value;
  return value - high < low + TURN - value ? high : low;
}

// The directions nearest to `direction` that the tool axis of a planar arm can take with the tool at `point`.
inline std::vector<Vector> project(const Vector& point, const Vector& direction) {
  // The normal n(q1) is NORMAL turned by q1 about AXIS: flat cos q1 + side sin q1 + rest. With the tool in the
  // plane, from . n(q1) = HEIGHT, which is a cos q1 + b sin q1 = c: two angles about atan2(b, a), or none.
  const double along = dot(AXIS, NORMAL);
  const Vector from = sum(1.0, point, -1.0, POINT);
  const Vector flat = sum(1.0, NORMAL, -along, AXIS), side = cross(AXIS, NORMAL);
  const double a = dot(from, flat), b = dot(from, side), c = HEIGHT - along * dot(from, AXIS);
  const double length = std::hypot(a, b);
  std::vector<Vector> found;
  if (std::abs(c) > length || length == 0.0)
    return found;
  for (const double sign : { 1.0, -1.0 }) {
    const double q1 = std::atan2(b, a) + sign * std::acos(c / length);
    const Vector normal = sum(1.0, sum(std::cos(q1), flat, std::sin(q1), side), along, AXIS);
    const Vector within = sum(1.0, direction, -dot(direction, normal), normal);
    const double size = std::sqrt(dot(within, within));
    if (size > 1e-6)  // else all directions of the plane are as near
      found.push_back(sum(SLOPE, normal, std::sqrt(1.0 - SLOPE * SLOPE) / size, within));
  }
  return found;
}

// Add the solutions for the point of `wanted` and a direction of the tool axis.
inline void add_answers(const Frame& wanted, const Vector& axis, const Joints& seed, const Joints& low,
                        const Joints& high, bool roll_free, std::vector<Answer>& answers) {
  double found[@ARM@_MOST][N];
  const int count = @arm@_all(wanted.point.data(), axis.data(), seed.data(), found, nullptr);
  for (int k = 0; k < count; ++k) {
    Answer answer{ Joints(found[k], found[k] + N), 0.0, 0.0 };
    Joints& q = answer.q;
    Frame tool = forward(q);
    if (ROLL_JOINT >= 0) {
      const double sine = dot(tool.axis, cross(tool.lateral, wanted.lateral));
      double& joint = q[ROLL_JOINT];
      joint += ROLL_SIGN * std::atan2(sine, dot(tool.lateral, wanted.lateral));
      joint = turn_within(joint, seed[ROLL_JOINT], low[ROLL_JOINT], high[ROLL_JOINT]);
      tool = forward(q);
    }
    answer.turned = angle_between(wanted, tool);
    bool fits = roll_free || answer.turned <= EXACT;
    for (std::size_t i = 0; i < N; ++i) {
      fits = fits && low[i] <= q[i] && q[i] <= high[i];
      answer.moved = std::max(answer.moved, std::abs(q[i] - seed[i]));
    }
    if (fits)
      answers.push_back(std::move(answer));
  }
}

// Every answer within the limits, first by orientation in steps of EXACT, then by the move from the seed.
//
// roll_free: answers that meet the position and the direction of the tool axis count, whatever their roll; and where
// a planar arm has none, those whose direction is the nearest at this position, if it is off by at most
// direction_tolerance [rad]. Otherwise answers are those that meet the whole frame.
inline std::vector<Answer> find_answers(const Frame& wanted, const Joints& seed, const Joints& low, const Joints& high,
                                        bool roll_free, double direction_tolerance) {
  std::vector<Answer> answers;
  add_answers(wanted, wanted.axis, seed, low, high, roll_free, answers);
  if (answers.empty() && PLANAR)  // the whole orientation may be within EXACT although the direction is not met
    for (const Vector& nearest : project(wanted.point, wanted.axis))
      if (bounded_acos(dot(nearest, wanted.axis)) <= (roll_free ? direction_tolerance : EXACT))
        add_answers(wanted, nearest, seed, low, high, roll_free, answers);
  std::sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) {
    return std::make_pair(std::floor(a.turned / EXACT), a.moved) < std::make_pair(std::floor(b.turned / EXACT), b.moved);
  });
  return answers;
}

}  // namespace @package@
