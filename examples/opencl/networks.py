"""Compares networks on a device of OpenCL with the CPU: one forward and one backward pass.

    pip install --no-deps torchvision pillow
    python networks.py [--size 64] [NAME ...]

For each network, the table has the errors of the output and of all gradients, on the device and on
the CPU: the norm of the difference to what the CPU computes in double precision, relative to the
norm of that. Then come the times of a second pass, and the operators that fell back to the CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import torch
from compare import DEVICE, difference, fallbacks, reset_fallbacks

#: Those with which pytorch_dlprim, another backend for OpenCL, was validated in both directions.
NETWORKS = """
    alexnet resnet18 resnet50 convnext_small vgg16 squeezenet1_0 googlenet densenet161
    shufflenet_v2_x1_0 mobilenet_v2 mobilenet_v3_large resnext50_32x4d wide_resnet50_2 mnasnet1_0
    efficientnet_b0 efficientnet_b4 regnet_y_400mf vit_b_16
""".split()
DECLARED = torch.library.Library("torchvision", "FRAGMENT")
#: The greatest errors of single precision. Rounding decides on which side of 0 some inputs of a
#: ReLU are: each of these changes a gradient much more than rounding does, on the CPU as well.
MOST_OF_OUTPUT, MOST_OF_GRADIENTS = 1e-4, 1e-2


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


class Compared(NamedTuple):
    """Errors and the seconds of a pass, on the device and on the CPU."""

    output: tuple[float, float]
    gradients: tuple[float, float]
    seconds: tuple[float, float]

    def good(self) -> bool:
        return self.output[0] < MOST_OF_OUTPUT and self.gradients[0] < MOST_OF_GRADIENTS


def compare(models: object, name: str, size: int) -> Compared:
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    exact, exact_gradients, _ = passes(made(models, name, size).double(), images.double())
    reset_fallbacks()
    outputs, gradients, seconds = zip(
        *(passes(made(models, name, size).to(at), images.to(at)) for at in (DEVICE, "cpu")),
        strict=True,
    )
    return Compared(
        tuple(difference([one], [exact]) for one in outputs),
        tuple(difference(one, exact_gradients) for one in gradients),
        seconds,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--size", type=int, default=64, help="of the images: %(default)s")
    options = parser.parse_args()
    models = torchvision_models()
    print(f"{'':<20} {'error of output':>17} {'error of gradients':>19} {'seconds':>13}")
    print(f"{'network':<20}" + f" {'ocl':>8} {'cpu':>8}" * 2 + f" {'ocl':>6} {'cpu':>6}  fallbacks")
    wrong = []
    for name in options.names:
        found = compare(models, name, options.size)
        errors = "".join(f" {error:8.1e}" for error in (*found.output, *found.gradients))
        seconds = "".join(f" {one:6.2f}" for one in found.seconds)
        print(f"{name:<20}{errors}{seconds}  {fallbacks()}", flush=True)
        if not found.good():
            wrong.append(name)
    if wrong:
        print(f"error: too far from double precision: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
