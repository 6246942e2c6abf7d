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

/// A call to a function of a Runtime, as errors describe it.
struct DriverCall {
  const char* runtime;   ///< the C++ type, such as "foo::Runtime"
  const char* function;  ///< such as "create_event"
  int device;            ///< the index; negative if the function does not belong to one device

  std::string name() const { return std::string(runtime) + "::" + function; }

  /// A word and PyTorch's name of the device, such as " on foo:0"; empty if there is no device.
  std::string where(const char* word) const {
    if (device < 0) return "";
    return std::string(" ") + word + " " + c10::DeviceTypeName(kDeviceType, true) + ":" +
           std::to_string(device);
  }
};

/// In a handler: the C++ type of the exception.
inline std::string thrown_type() {
#if __has_include(<cxxabi.h>)
  if (const std::type_info* const type = abi::__cxa_current_exception_type()) {
    return c10::demangle(type->name());
  }
#endif
  return "something";
}

/// In a handler: the exception as text. In a thread that is being cancelled, the cancellation
/// continues.
inline std::string thrown_text() {
  const auto or_type = [](const char* text) {
    return text != nullptr && *text != '\0' ? std::string(text)
                                            : "it threw " + thrown_type() + " without a message";
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
    return "it threw " + thrown_type() + ", which is not a std::exception";
  }
}

/// In a handler of an exception from a Runtime's function: throws a PyTorch error that names the
/// function and the device. An exception that is already PyTorch's, such as c10::OutOfMemoryError,
/// keeps its type; any other becomes a RuntimeError.
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

/// Throws because a Runtime's function returned an invalid result.
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
    return;  // a handler of warnings threw; the error cannot be reported
  }
}

/// In a handler of an exception from a Runtime's function, where nothing may be thrown: warns, and
/// names the function and the consequence.
C10_NOINLINE inline void warn_of_thrown(const DriverCall& call, const char* consequence) noexcept {
  try {
    warn_only(call.name(), " failed", call.where("on"), ": ", as_utf8(thrown_text()), "; ",
              consequence);
  } catch (const std::exception&) {
    return;  // there is no memory for the text
  }
}

}  // namespace backendkit
