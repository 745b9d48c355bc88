# SPDX-License-Identifier: Apache-2.0
"""Arms with spare joints: families of solutions, locked joints, a roll that moves nothing."""
