# SPDX-License-Identifier: Apache-2.0
#[[.md:
## backendkit_smoke_test

Adds a CTest test, labelled `backendkit`, that uses a backend in a fresh process.

```
backendkit_smoke_test(<test> BACKEND <backend>)
```

Installs the backend's component into a folder of its own, imports it with the Python that it was
built for, and computes with a tensor on the device. Needs `enable_testing()`.
#]]
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/_arguments.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_stage.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/_torch.cmake)

function(backendkit_smoke_test test)
  _backendkit_parse(arg "" "BACKEND" "" 1)
  _backendkit_require_backend(backendkit_smoke_test "${arg_BACKEND}")
  _backendkit_find_torch(backendkit_smoke_test)
  get_target_property(module ${arg_BACKEND} BACKENDKIT_MODULE)
  get_target_property(device ${arg_BACKEND} BACKENDKIT_DEVICE)
  set(stage ${CMAKE_CURRENT_BINARY_DIR}/${test}-stage)
  _backendkit_stage(stage_command ${arg_BACKEND} ${stage})
  add_test(NAME ${test}_install COMMAND ${stage_command})
  string(CONCAT code "import torch, ${module}\n"
                "total = float((torch.ones(2, device='${device}') + 1).sum())\n"
                "assert total == 4, total\n")
  add_test(NAME ${test} COMMAND ${BACKENDKIT_PYTHON} -c "${code}" WORKING_DIRECTORY ${stage})
  set_tests_properties(${test}_install PROPERTIES LABELS backendkit FIXTURES_SETUP ${test}_stage)
  set_tests_properties(
    ${test} PROPERTIES LABELS backendkit FIXTURES_REQUIRED ${test}_stage
                       ENVIRONMENT "PYTHONPATH=${stage};TORCH_DEVICE_BACKEND_AUTOLOAD=0")
endfunction()
