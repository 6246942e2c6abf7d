# SPDX-License-Identifier: Apache-2.0
# Internal: the oldest minor release of PyTorch that BackendKit works for. Defined only here.
set(_BACKENDKIT_OLDEST_TORCH 2.5)
