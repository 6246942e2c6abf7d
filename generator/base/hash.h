// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace backendgen {

/// FNV-1a of eight bytes at a time, mixed. The same for the same text on every machine; no defence
/// against an attacker.
std::uint64_t hash_of(std::string_view bytes);

}  // namespace backendgen
