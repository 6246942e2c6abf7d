"""For torchcts, which runs from this folder: `torchcts run --device npu`."""

from torch_npu.testing import torchcts_manifest

# What the device can is known; say here what torchcts should do besides, such as skip_ops=[...].
manifest = torchcts_manifest()
