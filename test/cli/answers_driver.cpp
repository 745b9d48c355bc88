// SPDX-License-Identifier: Apache-2.0
// Reads queries, one a line: roll_free, direction tolerance, point, tool axis and lateral axis (9), seed (N).
// Prints for each how many answers there are, and of each joints (N), turned and moved.

#include <cstdio>

#include "answers.hpp"

using namespace PACKAGE;

int main()
{
    const Joints low(ARM_LOWER, ARM_LOWER + N), high(ARM_UPPER, ARM_UPPER + N);
    double given[11 + N];
    while (true) {
        for (double &value : given)
            if (std::scanf("%lf", &value) != 1)
                return 0;
        const Frame wanted{{given[2], given[3], given[4]}, {given[5], given[6], given[7]}, {given[8], given[9], given[10]}};
        const auto answers = find_answers(wanted, Joints(given + 11, given + 11 + N), low, high, given[0] != 0.0, given[1]);
        std::printf("%zu", answers.size());
        for (const Answer &answer : answers) {
            for (const double value : answer.q)
                std::printf(" %.17g", value);
            std::printf(" %.17g %.17g", answer.turned, answer.moved);
        }
        std::puts("");
    }
}
