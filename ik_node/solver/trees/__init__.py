# SPDX-License-Identifier: Apache-2.0
"""Several tools on shared joints."""
