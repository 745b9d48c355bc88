/* SPDX-License-Identifier: Apache-2.0
 *
 * How @file@ is used. Compile and run it:
 *     cc -std=c99 -O2 @main@ -lm -o @arm@ && ./@arm@
 */
#include <stdio.h>

#include "@file@"

static void print_joints(const char *title, const @real@ q[@ARM@_JOINTS])
{
    printf("%-10s", title);
    for (int i = 0; i < @ARM@_JOINTS; i++)
        printf(" %9.4f", (double)q[i]);
    printf("\n");
}

static void solve(const @real@ position[3], const @real@ direction[3], const @real@ seed[@ARM@_JOINTS])
{
    @real@ q[@ARM@_JOINTS];
    const @arm@_answer answer = @arm@_nearest(position, direction, seed, q);
    printf("\ngoal       %9.4f %9.4f %9.4f m, direction %7.4f %7.4f %7.4f\n", (double)position[0],
           (double)position[1], (double)position[2], (double)direction[0], (double)direction[1],
           (double)direction[2]);
    printf("%s", @arm@_reason(answer.status));
    if (answer.joint >= 0)
        printf(" (joint %s)", @arm@_joint_names[answer.joint]);
    printf("; off by %.1e m and %.1e rad\n", (double)answer.position_error, (double)answer.direction_error);
    print_joints(answer.status == @ARM@_SOLVED ? "nearest" : "close", q);
}

int main(void)
{
    /* Forward kinematics: where the tool is. */
    const @real@ known[@ARM@_JOINTS] = {@known@};
    @real@ position[3], direction[3];
    @arm@_forward(known, position, direction, NULL);
    print_joints("joints", known);

    /* The solution nearest to where the arm is: on a robot, the measured joint positions. */
    const @real@ seed[@ARM@_JOINTS] = {@seed@};
    solve(position, direction, seed);

    /* All solutions. */
    @real@ all[@ARM@_MOST][@ARM@_JOINTS];
    bool complete;
    const int count = @arm@_all(position, direction, seed, all, &complete);
    printf("%d in all%s\n", count, complete ? ", and there are no others" : "");
    for (int k = 0; k < count; k++)
        print_joints("", all[k]);

    /* A goal that is too far away. */
    position[0] += @far@;
    solve(position, direction, seed);
    return 0;
}
