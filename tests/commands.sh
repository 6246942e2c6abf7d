# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154  # the variables are those of ./dev, which reads this file
# Commands of ./dev: what each builds, and the script that does the work.

# A driver for examples/opencl that computes on the CPU, and what the example uses of Debian.
opencl_driver=(libclblast1 ocl-icd-libopencl1 opencl-headers pocl-opencl-icd)

fuzz() {
  set_up clang libclang-rt-dev
  cmake_build fuzz fuzz
  "$base/bin/python" tests/generator/fuzz/fuzz.py --programs "$cache/fuzz/tests/generator/fuzz" --work "$cache/fuzzing" \
    --jobs "$CMAKE_BUILD_PARALLEL_LEVEL" "$@"
}

bench() {
  local driver=("${opencl_driver[@]}")
  [[ " $* " == *" opencl "* ]] || driver=()
  set_up "${driver[@]}"
  cmake_build release all
  environments
  "$base/bin/python" tests/bench/bench.py "$@"
}

endings() {
  set_up
  cmake_build release all
  environments
  "$backend/bin/python" tests/device/endings.py --device foo --write docs/endings.md "$@"
}

frameworks() {
  set_up
  "$base/bin/python" tests/pytorch/frameworks/run.py --folder "$cache/frameworks" "$@"
}

platforms() {
  set_up clang libclang-rt-dev g++-aarch64-linux-gnu qemu-user
  cmake_build release backendgen
  tools_environment
  variables
  "$base/bin/python" tests/package/platforms/run.py --folder "$cache/platforms" \
    --tools "$tools/bin/python" "$@"
}

matrix() {
  set_up
  cmake_build release all
  export BACKENDKIT_BUILD=$cache/release
  "$base/bin/python" tests/pytorch/matrix/matrix.py --folder "$cache/matrix" "$@"
}

follow() {
  set_up
  cmake_build release all >&2
  export BACKENDKIT_BUILD=$cache/release BACKENDGEN=$cache/release/generator/backendgen
  PYTHONPATH=tests/pytorch "$base/bin/python" -m follow --folder "$cache/follow" "$@"
}

wheels() {
  set_up
  tools_environment
  "$base/bin/python" tests/package/wheels/wheels.py --folder "$cache/wheels" --tools "$tools" "$@"
}

ci_steps() {
  set_up mmdebstrap
  tools_environment
  # What the containers have mounted is gone with the last process, even if that is killed.
  unshare --mount "$tools/bin/python" tests/package/ci/steps.py "$cache/ci" "$@"
}

release() {
  set_up dpkg-dev libc6-arm64-cross lintian mmdebstrap qemu-user
  "$base/bin/python" release/release.py --out "$cache/dist" --work "$cache/releasing" "$@"
}

site() {
  set_up
  "$base/bin/python" site/build.py "$cache/site" "$@"
}
