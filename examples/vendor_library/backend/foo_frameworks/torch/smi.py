"""The program `foo-smi`: `console_scripts` of backend.toml makes pip put it on the path."""

import torch


def main() -> int:
    """Lists the devices; exit status 1 if there is none."""
    names = torch.foo.device_names()
    print("\n".join(names) if names else f"no {torch.foo.display_name} found")
    return 0 if names else 1
