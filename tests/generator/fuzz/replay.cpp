// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on every file of the folders named on the command line.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "check.h"

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::size_t broken = 0;
  for (const auto& path : files) {
    // Named before it runs, so that a sanitizer's report stands below the name.
    std::cout << path.filename().string() << std::endl;
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    try {
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    } catch (const fuzz::Broken& error) {
      std::cout << "error: " << error.what() << '\n';
      ++broken;
    }
  }
  std::cout << files.size() << " files, " << broken << " broken\n";
  return files.empty() || broken != 0 ? 1 : 0;
}
