# SPDX-License-Identifier: Apache-2.0
"""All solutions by elimination of joints."""
