/* SPDX-License-Identifier: Apache-2.0
 * Solves goals from a file with the header of an arm: rows of position, direction and seed in, rows of the answer,
 * all solutions and forward kinematics out, all as doubles. HEADER is the file, NAME and BIG what its names begin with. */
#include <stdio.h>
#include HEADER
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF(b) JOIN(NAME, b)
#define N JOIN(BIG, _JOINTS)
#define MOST JOIN(BIG, _MOST)

int main(int count, char **files)
{
    FILE *in = fopen(files[1], "rb"), *out = fopen(files[2], "wb");
    double row[6 + N], result[12 + N + MOST * N];
    (void)count;
    while (fread(row, sizeof row, 1, in) == 1) {
        REAL position[3], direction[3], seed[N], q[N], found[MOST][N], at[3], along[3];
        for (int i = 0; i < 3; i++) {
            position[i] = (REAL)row[i];
            direction[i] = (REAL)row[3 + i];
        }
        for (int i = 0; i < N; i++)
            seed[i] = (REAL)row[6 + i];
        memset(found, 0, sizeof found);
        bool complete;
        const OF(_answer) answer = OF(_nearest)(position, direction, seed, q);
        const int number = OF(_all)(position, direction, seed, found, &complete);
        OF(_forward)(seed, at, along, NULL);
        double *next = result;
        *next++ = answer.status;
        *next++ = answer.position_error;
        *next++ = answer.direction_error;
        *next++ = answer.joint;
        *next++ = number;
        *next++ = complete;
        for (int i = 0; i < 6; i++)
            *next++ = i < 3 ? at[i] : along[i - 3];
        for (int i = 0; i < N; i++)
            *next++ = q[i];
        for (int i = 0; i < MOST * N; i++)
            *next++ = found[i / N][i % N];
        fwrite(result, sizeof result, 1, out);
    }
    return fclose(out);
}
