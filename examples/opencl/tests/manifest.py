"""The manifest of torchcts. Run it in this folder: `torchcts run --device ocl`."""

from torch_opencl.testing import torchcts_manifest

# The backend itself reports what the device supports. Pass other settings of torchcts here, such
# as skip_ops=[...].
manifest = torchcts_manifest()
