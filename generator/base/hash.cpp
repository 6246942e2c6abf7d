// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <cstddef>

namespace backendgen {

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 32;
  };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    add(word);
  }
  for (const char byte : bytes) add(static_cast<unsigned char>(byte));
  return hash;
}

}  // namespace backendgen
