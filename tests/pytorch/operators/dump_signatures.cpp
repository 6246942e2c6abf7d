// SPDX-License-Identifier: Apache-2.0
// Prints what backendgen knows about every operator of a PyTorch, for the comparison with torchgen:
// one line each with tabs between name, schema, C++ signature with symbolic integers and without,
// the positions of the arguments that tell the device, and what a structured kernel gets.

#include <iostream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/disk.h"
#include "glue/kernel_group.h"
#include "torch/catalog.h"
#include "torch/cpp_types.h"
#include "torch/install.h"

namespace {

using namespace backendgen;

std::string cpp(const Operator& op, SymInts symints) {
  const auto signature = cpp_signature(op, symints);
  if (!signature) return signature.why();
  return fmt::format("{} ({})", signature->return_type, signature->declaration());
}

/// The parameters of a structured kernel, "| " and those of its meta function; empty for others.
std::string structured(const Operator& op) {
  if (!is_structured_out(op)) return "";
  const auto signature = structured_signature(op);
  if (!signature) return signature.why();
  return fmt::format("{} | {}", Signature{"", signature->kernel}.declaration(),
                     Signature{"", signature->meta}.declaration());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: dump_signatures TORCH_FOLDER\n";
    return 2;
  }
  RealDisk disk;
  Diagnostics problems;
  const auto torch = open_torch(argv[1], disk, problems);
  const auto catalog = torch ? read_catalog(*torch, disk, problems) : std::nullopt;
  for (const Diagnostic& problem : problems.sorted()) {
    std::cerr << problem.message << '\n';
    for (const std::string& note : problem.notes) std::cerr << "note: " << note << '\n';
  }
  if (!catalog) return 1;
  std::string text;
  for (const Operator& op : catalog->operators()) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", op.schema.name().text(), op.schema.text(),
                        cpp(op, SymInts::kSymbolic), cpp(op, SymInts::kNumbers),
                        fmt::join(device_order(op.schema), " "), structured(op));
  }
  std::cout << text;
  return 0;
}
