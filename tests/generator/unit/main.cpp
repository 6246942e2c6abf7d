// SPDX-License-Identifier: Apache-2.0

// Catch2 3 brings its main in a library; Catch2 2 wants one file to ask for it.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "catch.h"
