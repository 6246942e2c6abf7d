"""How long the operators of a training step take on the device."""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

model = nn.Sequential(nn.Linear(512, 512), nn.Softplus(), nn.Linear(512, 10)).to("ocl")
images = torch.randn(512, 512, device="ocl")
model(images).sum().backward()  # compiles the kernels
torch.ocl.reset_fallback_report()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as times:
    model(images).sum().backward()
for event in sorted(times.key_averages(), key=lambda event: event.key):
    if event.device_type.name == "OCL":
        print(f"{event.key:<60} {event.count} {event.self_device_time_total / 1000:8.3f} ms")
times.export_chrome_trace("trace.json")
print(torch.ocl.fallback_report())
