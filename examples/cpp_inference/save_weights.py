# SPDX-License-Identifier: Apache-2.0
"""Writes a small network's weights, an image and what Python computes: save_weights.py FILE"""

import sys

import torch

torch.manual_seed(0)
convolution = torch.nn.Conv2d(1, 4, kernel_size=3, stride=2)
classes = torch.nn.Linear(4 * 13 * 13, 10)
image = torch.rand(1, 1, 28, 28)
with torch.inference_mode():
    hidden = convolution(image).relu().flatten(1)
    expected = classes(hidden).softmax(1)

# A dictionary of tensors, which `pickle_load` of C++ reads; `state_dict()` gives an OrderedDict.
tensors = {
    "convolution.weight": convolution.weight.data,
    "convolution.bias": convolution.bias.data,
    "classes.weight": classes.weight.data,
    "classes.bias": classes.bias.data,
    "image": image,
    "expected": expected.clone(),
}
torch.save(tensors, sys.argv[1])
