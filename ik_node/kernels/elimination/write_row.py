# SPDX-License-Identifier: Apache-2.0
"""Rows of candidates."""

from math import nan

from ..runtime.compiled import compiled
from .layout import ACTIVE, JOINTS, SIZE, SLIDING, VARIABLE


@compiled
def write_row(form, values, out, count):
    """Write values of the joints that count as row count of out (k, n), else NaN; return the new count."""
    if count == out.shape[0]:
        return count
    row = out[count]
    for k in range(row.shape[0]):
        row[k] = nan
    for k in range(int(form[0, ACTIVE])):
        joint = form[JOINTS + k]
        row[int(joint[VARIABLE])] = values[k] * (form[0, SIZE] if joint[SLIDING] != 0.0 else 1.0)
    return count + 1
