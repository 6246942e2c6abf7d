// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/context.h"

namespace backendgen {

struct DoctorOptions {
  std::string package;  // look only at this installed backend; empty: at all
  std::string python;   // the interpreter to look at; empty: the default one
  std::string device;   // the device to use
  std::string timeout;  // in seconds, as typed; empty: 10
  std::string format;   // "text", "json"; empty: text
  bool use_device = false;
};

/// `backendgen doctor`: what is wrong with this machine and with its backends. Exit status: kNo
/// when a check failed.
int run_doctor(const DoctorOptions& options, Context& context);

}  // namespace backendgen
