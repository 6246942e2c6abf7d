"""The logs of `torchrun --logs-specs foo`: what each process prints, in files named by its device.

`torchrun.logs_specs` of backend.toml makes torchrun find this class.
"""

import dataclasses
import os
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs

__all__ = ["DeviceLogs"]


class DeviceLogs(DefaultLogsSpecs):  # type: ignore[misc]
    """`foo-0.out`, `foo-0.err`, `foo-1.out`, ... in the folder that `--log-dir` names."""

    def reify(self, envs: dict[int, dict[str, str]]) -> Any:
        def paths(ending: str) -> dict[int, str]:
            return {rank: os.path.join(self.root_log_dir, f"foo-{rank}.{ending}") for rank in envs}

        return dataclasses.replace(super().reify(envs), stdouts=paths("out"), stderrs=paths("err"))
