# SPDX-License-Identifier: Apache-2.0
"""From kernels in plain Python to C99; the Python source stays the only one.

program.py collects what some kernels need, function.py translates one kernel for one set of argument types,
on top of expressions.py, and module.py wraps the kernels that Python calls. types.py says which types there
are. runtime.h is the C that every program begins with, arena.h the memory of those that have no stack for it,
module.h the part that talks to Python and NumPy.
"""
