/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse kinematics of @title@,
 * made by ik_export of ik_node from its description: do not edit, export it again.
 *
 * A goal is a position of the tool point [m] and a direction of the tool axis, of any length, both in the frame
 * of link "@base@". Rotation about the tool axis is free. The solutions come from a closed form:
 * @geometry@.
 * Those that are returned are within the joint limits, and meet the goal within @position@ m and @direction@ rad as
 * forward kinematics in @real@ says.
 *
 * All functions are static, allocate nothing, keep nothing between calls, and always end. C99 or C++; link with
 * -lm. For the same bits on every compiler add -ffp-contract=off.
 */
#ifndef @ARM@_IK_H
#define @ARM@_IK_H

#include <math.h>
#include <stdbool.h>

#define @ARM@_JOINTS @joints@
#define @ARM@_MOST @most@ /* solutions of a goal that @arm@_all finds */

/* The joints in the order of q, with their limits [@units@]; INFINITY where a joint has none. */
static const char *const @arm@_joint_names[@ARM@_JOINTS] = {@names@};
static const @real@ @arm@_lower[@ARM@_JOINTS] = {@lower@};
static const @real@ @arm@_upper[@ARM@_JOINTS] = {@upper@};

typedef enum {
    @ARM@_SOLVED,
    @ARM@_JOINT_LIMIT,  /* proven: only joint positions beyond a limit meet this goal */
    @ARM@_OUT_OF_REACH, /* proven: no joint positions meet this goal */
    @ARM@_NOT_FOUND,    /* no solution was found, which proves nothing: @doubt@ */
    @ARM@_INVALID       /* a number is not finite or above 1e9, or the direction has no length */
} @arm@_status;

typedef struct {
    @arm@_status status;
    @real@ position_error;  /* [m], */
    @real@ direction_error; /* [rad], of the joint positions that were written */
    int joint;              /* whose limit excludes the goal, with @ARM@_JOINT_LIMIT; else -1 */
} @arm@_answer;

/* Position of the tool point [m] and unit direction of the tool axis at joint positions q. lateral, which may be NULL:
 * the unit axis @lateral@ of the tip link, across the tool axis, which turns with the roll. */
static inline void @arm@_forward(const @real@ q[@ARM@_JOINTS], @real@ position[3], @real@ direction[3],
                                 @real@ lateral[3]);

/* Write into q the solution nearest to seed, by the largest move of a joint.
 *
 * Where the closed form finds none, a descent from seed@more@ may.
 * Otherwise q is where it ends, within the limits: near the goal, but there may be joint positions that are nearer.
 * If the answer is @ARM@_INVALID, q is seed. q may be seed. */
static inline @arm@_answer @arm@_nearest(const @real@ position[3], const @real@ direction[3],
                                         const @real@ seed[@ARM@_JOINTS], @real@ q[@ARM@_JOINTS]);

/* Write all solutions into rows of q, the nearest to seed first, and return how many there are.
 *
 * Of solutions that are whole turns of a joint apart, there is the one nearest to seed. complete: whether there
 * are no others; it may be NULL. */
static inline int @arm@_all(const @real@ position[3], const @real@ direction[3], const @real@ seed[@ARM@_JOINTS],
                            @real@ q[@ARM@_MOST][@ARM@_JOINTS], bool *complete);

/* What a status means. */
static inline const char *@arm@_reason(@arm@_status status);

/* What follows is the work: the kernels of ik_node, translated from Python, each with its comment there. */

@kernels@

static inline void @arm@_forward(const @real@ q[@ARM@_JOINTS], @real@ position[3], @real@ direction[3],
                                 @real@ lateral[3])
{
    @real@ values[@ARM@_JOINTS], frames[@rows@][3];
    memcpy(values, q, sizeof values);
    @forward@(@model_forward@, values, frames[0]);
    memcpy(position, frames[@point@], sizeof frames[0]);
    memcpy(direction, frames[@point@ + 1], sizeof frames[0]);
    if (lateral)
        memcpy(lateral, frames[@point@ + 2], sizeof frames[0]);
}

/* Put a goal and a seed together for the kernels; whether they are valid. */
static inline bool @arm@_ik_given(const @real@ position[3], const @real@ direction[3],
                                  const @real@ seed[@ARM@_JOINTS], @real@ goal[9], @real@ start[@ARM@_JOINTS])
{
    for (int i = 0; i < 3; i++) {
        goal[i] = position[i];
        goal[3 + i] = direction[i];
        goal[6 + i] = NAN; /* the lateral axis of the tool: free */
    }
    memcpy(start, seed, @ARM@_JOINTS * sizeof *start);
    return @prepare@(goal, start);
}

static inline @arm@_answer @arm@_nearest(const @real@ position[3], const @real@ direction[3],
                                         const @real@ seed[@ARM@_JOINTS], @real@ q[@ARM@_JOINTS])
{
    @real@ goal[9], start[@ARM@_JOINTS], found[@ARM@_MOST][@ARM@_JOINTS];
    @arm@_answer answer = {@ARM@_INVALID, INFINITY, INFINITY, -1};
    const bool valid = @arm@_ik_given(position, direction, seed, goal, start);
    memcpy(q, start, sizeof start);
    if (valid) {
        const @answer_type@ result = @answer@(@model@, goal, start, found[0], q);
        answer.status = (@arm@_status)result.e0;
        answer.position_error = result.e1;
        answer.direction_error = result.e2;
        answer.joint = (int)result.e3;
    }
    return answer;
}

static inline int @arm@_all(const @real@ position[3], const @real@ direction[3], const @real@ seed[@ARM@_JOINTS],
                            @real@ q[@ARM@_MOST][@ARM@_JOINTS], bool *complete)
{
    @real@ goal[9], start[@ARM@_JOINTS];
    @all_type@ result = {0, false};
    if (@arm@_ik_given(position, direction, seed, goal, start))
        result = @all@(@model@, goal, start, q[0]);
    if (complete)
        *complete = result.e1;
    return (int)result.e0;
}

static inline const char *@arm@_reason(@arm@_status status)
{
    switch (status) {
    case @ARM@_SOLVED: return "solved";
    case @ARM@_JOINT_LIMIT: return "unreachable: only joint positions beyond a limit meet this goal";
    case @ARM@_OUT_OF_REACH: return "unreachable: no joint positions meet this goal";
    case @ARM@_NOT_FOUND: return "no solution was found, which proves nothing";
    default: return "invalid: a number is not finite or above 1e9, or the direction has no length";
    }
}
#endif
