// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <torch/library.h>

#include <backendkit/registration_problem.h>

namespace backendkit {

/// Registers operators with `fill` and keeps them registered. PyTorch's own macros unregister them
/// when static objects are destroyed, while threads may still compute in a program whose `main` has
/// returned. Registers nothing and returns null if `registration_problem` gives a reason.
inline torch::Library* register_for_good(torch::Library::Kind kind, const char* name,
                                         std::optional<c10::DispatchKey> key, const char* file,
                                         std::uint32_t line, void (*fill)(torch::Library&)) {
  if (registration_problem() != nullptr) return nullptr;
  auto* const library = new torch::Library(kind, name, key, file, line);
  fill(*library);
  return library;
}

/// Registers what answers for all operators that have nothing for a dispatch key, unless somebody
/// else has: PyTorch takes one for a key, and throws at the second.
inline void register_fallback(c10::DispatchKey key, torch::CppFunction&& fallback) {
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) return;
  auto* const all =
      register_for_good(torch::Library::IMPL, "_", key, __FILE__, __LINE__, [](torch::Library&) {});
  if (all != nullptr) all->fallback(std::move(fallback));
}

}  // namespace backendkit

/// Replaces TORCH_LIBRARY_IMPL and TORCH_LIBRARY_FRAGMENT for `register_for_good`.
#define BACKENDKIT_LIBRARY_IMPL(NAME, KEY, LIBRARY) \
  BACKENDKIT_REGISTER(IMPL, #NAME, c10::DispatchKey::KEY, LIBRARY, C10_UID)
#define BACKENDKIT_LIBRARY_FRAGMENT(NAME, LIBRARY) \
  BACKENDKIT_REGISTER(FRAGMENT, #NAME, std::nullopt, LIBRARY, C10_UID)

#define BACKENDKIT_REGISTER(KIND, NAME, KEY, LIBRARY, UID)                                  \
  static void C10_CONCATENATE(backendkit_fill_, UID)(torch::Library&);                      \
  [[maybe_unused]] static torch::Library* const C10_CONCATENATE(backendkit_library_, UID) = \
      ::backendkit::register_for_good(torch::Library::KIND, NAME, KEY, __FILE__, __LINE__,  \
                                      &C10_CONCATENATE(backendkit_fill_, UID));             \
  static void C10_CONCATENATE(backendkit_fill_, UID)([[maybe_unused]] torch::Library & LIBRARY)
