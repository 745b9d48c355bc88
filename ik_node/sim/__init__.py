# SPDX-License-Identifier: Apache-2.0
"""A simulated arm behind the controllers of a real one: MuJoCo, loaded where it is used."""
