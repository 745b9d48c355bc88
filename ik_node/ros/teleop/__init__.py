# SPDX-License-Identifier: Apache-2.0
"""Topics of an operator."""
