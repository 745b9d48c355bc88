# SPDX-License-Identifier: Apache-2.0
"""A made-up arm of six joints: one more than position and direction need."""

WITH_SPARE = (
    '<robot name="spare"><link name="base"/>'
    + ''.join(f'<link name="l{k}"/>' for k in range(6))
    + ''.join(
        f'<joint name="j{k}" type="revolute"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>'
        '<limit lower="-2.8" upper="2.8" velocity="2" effort="1"/></joint>'
        for k, (xyz, axis) in enumerate(
            (
                ('0 0 0.1', '0 0 1'),
                ('0.02 0 0.1', '0 1 0'),
                ('0 0 0.3', '0 1 0'),
                ('0 0 0.25', '0 1 0'),
                ('0.03 0 0.05', '1 0 0'),
                ('0.08 0 0.01', '0 1 0'),
            )
        )
    )
    + '</robot>'
)
