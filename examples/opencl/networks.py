"""Compares networks on a device of OpenCL with the CPU: one forward and one backward pass.

    pip install --no-deps torchvision pillow
    python networks.py [--size 64] [NAME ...]

For each network, the table has the difference of the output and that of all gradients, each by the
norm of the difference relative to the norm on the CPU, the time of a second pass, and the operators
that fell back to the CPU.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from compare import DEVICE, difference, fallbacks, reset_fallbacks

#: Those with which pytorch_dlprim, another backend for OpenCL, was validated in both directions.
NETWORKS = """
    alexnet resnet18 resnet50 convnext_small vgg16 squeezenet1_0 googlenet densenet161
    shufflenet_v2_x1_0 mobilenet_v2 mobilenet_v3_large resnext50_32x4d wide_resnet50_2 mnasnet1_0
    efficientnet_b0 efficientnet_b4 regnet_y_400mf vit_b_16
""".split()
DECLARED = torch.library.Library("torchvision", "FRAGMENT")
#: What single precision leaves of a difference after many layers, where some number that decides is
#: 0 but for rounding.
MOST = 1e-3


def torchvision_models() -> object:
    """torchvision's networks. Its own operators, which they do not use, are for PyTorch's CUDA
    build in the wheels of PyPI: where they do not load, declarations let the import go on."""
    try:
        from torchvision import models
    except RuntimeError:
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            DECLARED.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        from torchvision import models
    return models


def made(models: object, name: str, size: int) -> torch.nn.Module:
    torch.manual_seed(0)
    options: dict[str, object] = {"weights": None}
    if name == "googlenet":
        options.update(aux_logits=False, init_weights=True)
    if name == "vit_b_16":
        options["image_size"] = size
    network = getattr(models, name)(**options)
    with torch.no_grad():
        for parameter in network.parameters():  # a last layer of zeros would hide all others
            if parameter.dim() > 1 and not parameter.any():
                parameter.normal_(0, 0.02)
    # Dropout draws other numbers on each device, and two images are too few for a batch's variance.
    return network.eval()


def passes(network: torch.nn.Module, images: torch.Tensor) -> tuple[torch.Tensor, list, float]:
    """The output, the gradients, and the seconds of the second of two passes."""
    for _ in range(2):
        network.zero_grad(set_to_none=True)
        start = time.perf_counter()
        output = network(images)
        output.square().mean().backward()
        gradients = [one.grad.cpu() for one in network.parameters() if one.grad is not None]
        seconds = time.perf_counter() - start
    return output.detach().cpu(), gradients, seconds


def compare(models: object, name: str, size: int) -> tuple[float, ...]:
    """The differences of output and gradients, and the seconds on the device and on the CPU."""
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    expected, wanted, here = passes(made(models, name, size), images)
    reset_fallbacks()
    output, gradients, there = passes(made(models, name, size).to(DEVICE), images.to(DEVICE))
    return difference([output], [expected]), difference(gradients, wanted), there, here


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--size", type=int, default=64, help="of the images: %(default)s")
    options = parser.parse_args()
    models = torchvision_models()
    print(f"{'network':<20} {'output':>8} {'gradients':>9} {'ocl':>8} {'cpu':>8}  fallbacks")
    wrong = []
    for name in options.names:
        output, gradients, there, here = compare(models, name, options.size)
        figures = f"{output:8.1e} {gradients:9.1e} {there:6.2f} s {here:6.2f} s"
        print(f"{name:<20} {figures}  {fallbacks()}", flush=True)
        if not max(output, gradients) < MOST:
            wrong.append(name)
    if wrong:
        print(f"error: more than {MOST} apart: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
