// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <exception>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include <backendkit/device/utf8.h>

namespace backendkit {

constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

/// One call of a function of a Runtime, as errors name it.
struct DriverCall {
  const char* runtime;   ///< the C++ type, such as "foo::Runtime"
  const char* function;  ///< such as "create_event"
  int device;            ///< the index; negative where the function is not one of a device

  std::string name() const { return std::string(runtime) + "::" + function; }

  /// A word and PyTorch's name of the device, such as " on foo:0"; nothing where there is none.
  std::string where(const char* word) const {
    if (device < 0) return "";
    return std::string(" ") + word + " " + c10::DeviceTypeName(kDeviceType, true) + ":" +
           std::to_string(device);
  }
};

/// In a handler: the C++ type of what was thrown.
inline std::string thrown_type() {
#if __has_include(<cxxabi.h>)
  if (const std::type_info* const type = abi::__cxa_current_exception_type()) {
    return c10::demangle(type->name());
  }
#endif
  return "something";
}

/// In a handler: what was thrown, in words. A thread that is being cancelled goes on with that.
inline std::string thrown_text() {
  const auto or_type = [](const char* text) {
    return text != nullptr && *text != '\0' ? std::string(text)
                                            : "it threw " + thrown_type() + ", which says nothing";
  };
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (const c10::Error& error) {
    return or_type(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return or_type(error.what());
  } catch (const std::string& text) {
    return or_type(text.c_str());
  } catch (const char* text) {
    return or_type(text);
  } catch (int number) {
    return "it threw the number " + std::to_string(number);
  } catch (...) {
    return "it threw " + thrown_type() + ", which is no std::exception";
  }
}

/// In a handler of what a Runtime's function threw: throws an error of PyTorch's that names the
/// function and the device. One that is PyTorch's already keeps its type, such as
/// c10::OutOfMemoryError; anything else becomes a RuntimeError.
[[noreturn]] C10_NOINLINE inline void raise_thrown(const DriverCall& call) {
  const std::string failed = call.name() + " failed" + call.where("on");
  try {
    throw;
  } catch (c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (!text.empty() && as_utf8(text) == text) {
      error.add_context(failed);
      throw;
    }
    TORCH_CHECK(false, failed, ": ", as_utf8(thrown_text()));
  } catch (...) {
    TORCH_CHECK(false, failed, ": ", as_utf8(thrown_text()));
  }
  std::abort();
}

/// Throws since a Runtime's function returned what it must not.
[[noreturn]] C10_NOINLINE inline void raise_returned(const DriverCall& call,
                                                     const std::string& returned) {
  TORCH_CHECK(false, call.name(), " returned ", returned, call.where("for"));
  std::abort();
}

/// Warns where nothing may be thrown, such as in destructors.
template <class... Parts>
void warn_only(const Parts&... parts) noexcept {
  try {
    TORCH_WARN(parts...);
  } catch (...) {
    return;  // a handler of warnings threw; there is nobody to tell
  }
}

/// In a handler of what a Runtime's function threw where nothing may be thrown: a warning that
/// names the function, and what follows from it.
C10_NOINLINE inline void warn_of_thrown(const DriverCall& call, const char* consequence) noexcept {
  try {
    warn_only(call.name(), " failed", call.where("on"), ": ", as_utf8(thrown_text()), "; ",
              consequence);
  } catch (const std::exception&) {
    return;  // there is no memory for the text
  }
}

}  // namespace backendkit
