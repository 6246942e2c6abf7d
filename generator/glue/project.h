// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "description/description.h"
#include "glue/autocast.h"
#include "glue/kernel_model.h"
#include "glue/kernel_rows.h"
#include "glue/template.h"
#include "torch/install.h"
#include "torch/releases.h"

namespace backendgen {

/// A file to be, in memory. The path is relative, with "/", below the folder the plan is for.
struct PlannedFile {
  std::string path;
  std::string text;
};
using Plan = std::vector<PlannedFile>;  // sorted by path

/// What the glue depends on besides the description itself.
struct GlueModel {
  std::vector<KernelModel> kernels;
  std::vector<AutocastOperator> autocast;
};

/// Every name that templates may use, from only a description.
Values description_values(const Description& description);

/// The same and what depends on PyTorch: its release, the kernels with their C++ signatures, and
/// the operators that autocast treats.
Values glue_values(const Description& description, const TorchInstall& torch,
                   const GlueModel& model);

/// Every name that a file of registrations may use, for the kernels that it registers.
Values registration_values(const Kernels& kernels);

/// What `new` writes: the vendor's own files.
Plan plan_project(const Description& description);

/// What `generate` writes: the C++ glue, the Python package, and the packaging for the CMake road.
Plan plan_glue(const Description& description, const TorchInstall& torch, const GlueModel& model);

/// Which pipeline `ci` prints: the wheels, the weekly test with PyTorch's nightly build, or the
/// test that PyTorch's cross-repository CI relay starts.
enum class CiKind { kWheels, kNightly, kCrcr };

struct CiPlan {
  std::string service;  // "github" or "gitlab"
  CiKind kind = CiKind::kWheels;
  std::vector<TorchRelease> releases;  // at least one, oldest first
};

/// What `ci` prints.
std::string plan_ci(const Description& description, const CiPlan& plan);

}  // namespace backendgen
