# SPDX-License-Identifier: Apache-2.0
"""Faults that whole programs meet: processes, a driver that fails, modules, frameworks."""

from fault import Fault

# Processes and threads.

PROCESSES = [
    Fault(
        "Python does not wait for autograd's threads",
        "torch_foo/_loader.py",
        "self._drain(self._MILLISECONDS)",
        "None",
        ("test_processes.py::test_python_waits_for_autograd_s_threads_before_it_finalizes",),
    ),
    Fault(
        "what waits for autograd's threads passes them by",
        "include/backendkit/device/autograd_threads.h",
        "pass_nothing_back(device);",
        "static_cast<void>(device);",
        ("test_processes.py::test_what_autograd_s_threads_hold_is_waited_for",),
    ),
    Fault(
        "every process that runs a backward pass has threads for the device",
        "include/backendkit/device/device.h",
        "threads_.hidden(used_)",
        "false",
        ("test_processes.py::test_a_process_that_uses_only_the_cpu_has_no_threads_for_the_device",),
    ),
    Fault(
        "the device gets no threads after a backward pass on the CPU",
        "include/backendkit/device/autograd_threads.h",
        "if (!hidden_) return;",
        "return;",
        ("test_processes.py::test_the_device_has_its_threads_whenever_it_is_used_first",),
    ),
]

# What is registered late.

LATE = "test_late_registration.py::"

REGISTRATION = [
    Fault(
        "what only tensors of the device need is registered never",
        "include/backendkit/device/late_registration.h",
        "first_->make_();",
        "static_cast<void>(first_->make_);",
        (LATE + "test_as_the_first_use[nested, of a list]",),
    ),
    Fault(
        "what only tensors of the device need is registered as the library is opened",
        "include/backendkit/device/late_registration.h",
        "last_ = this;",
        "make(), last_ = this;",
        (LATE + "test_what_is_registered_when",),
    ),
    Fault(
        "a nested tensor of the CPU cannot go to the device before anything else",
        "include/backendkit/fallback/host_operators.h",
        'factories = {"_to_copy"};',
        "factories = {};",
        (LATE + "test_what_is_registered_when",),
    ),
    Fault(
        "autocast refuses fake tensors where there is no real one",
        "torch_foo/_device.py",
        "lambda library: library.register_late()",
        "lambda library: None",
        (LATE + "test_as_the_first_use[autocast of fake tensors]",),
    ),
]

# What a Runtime throws and returns.

CHECKS = "../runtime/faults/check_driver.py::"

DRIVER = [
    Fault(
        "memory that a device still writes is freed when the wait for it fails",
        "include/backendkit/copy/transfers.h",
        "InFlight::keep(device, stream, hosts_);",
        "static_cast<void>(stream);",
        (CHECKS + "test_it_is_there_until_a_wait_succeeds[True-the device]",),
    ),
    Fault(
        "memory that a device still reads may be freed by who resizes it",
        "include/backendkit/memory/in_flight.h",
        "impl->set_resizable(false);",
        "static_cast<void>(impl);",
        (CHECKS + "test_it_keeps_its_size_meanwhile",),
    ),
    Fault(
        "memory in flight is let go when another device has been waited for",
        "include/backendkit/memory/in_flight.h",
        "one.device == device && stream.value_or(one.stream) == one.stream",
        "stream.value_or(one.stream) == one.stream",
        (CHECKS + "test_it_is_there_until_a_wait_succeeds[False-the device]",),
    ),
    Fault(
        "nobody waits for a copy between devices that went on though its call failed",
        "include/backendkit/copy/transfers.h",
        "settle<Runtime>(from, {dst_storage, src_storage});",
        "static_cast<void>(from);",
        (
            CHECKS + "test_memory_of_another_device_is_not_given_out[late-waits]",
            CHECKS + "test_memory_of_another_device_is_not_given_out[and the next event-waits]",
        ),
    ),
    Fault(
        "an error of the driver ends a thread of autograd, and the process",
        "include/backendkit/guard.h",
        '!c10::getThreadName().starts_with("pt_autograd_")',
        "true",
        (CHECKS + "test_backward_on_a_device_that_cannot_be_current",),
    ),
    Fault(
        "devices are counted at every step",
        "include/backendkit/device/device.h",
        "known >= 0 ? known : ask()",
        "static_cast<void>(known), Driver<Runtime>::device_count()",
        (CHECKS + "test_devices_are_counted_once",),
    ),
    Fault(
        "a child waits for a thread that counts devices in its parent",
        "include/backendkit/device/device.h",
        "count_.compare_exchange_strong(asking, kUnknown);",
        "static_cast<void>(asking);",
        (CHECKS + "test_a_child_that_is_forked_while_devices_are_counted",),
        hangs=True,
    ),
    Fault(
        "the properties of one device are those of all",
        "include/backendkit/device/properties.h",
        "all[static_cast<std::size_t>(device)]",
        "all[static_cast<std::size_t>(device * 0)]",
        (CHECKS + "test_properties_are_asked_once_for_each_device",),
    ),
    Fault(
        "an event may be null",
        "include/backendkit/device/driver.h",
        "event == nullptr",
        "false",
        (CHECKS + "test_no_event",),
    ),
    Fault(
        "the current device may be one that there is not",
        "include/backendkit/device/driver.h",
        "device < 0 || device >= count",
        "false",
        (CHECKS + "test_a_device_that_there_is_not_is_not_the_current_one",),
    ),
    Fault(
        "two tensors have the memory that a driver gives twice",
        "include/backendkit/device/driver.h",
        "!memory().add(device, pointer, bytes)",
        "false",
        (CHECKS + "test_memory_that_was_given_before[allocate]",),
    ),
    Fault(
        "a driver's texts reach Python as they are",
        "include/backendkit/device/utf8.h",
        'length == 0 ? std::string_view("\\xEF\\xBF\\xBD") : text.substr(0, length)',
        "text.substr(0, length == 0 ? 1 : length)",
        (
            CHECKS + "test_a_name_in_no_utf_8",
            CHECKS + "test_what_is_thrown_is_an_error_that_names_the_function[bytes-"
            "RuntimeError-injected into synchronize \\ufffd\\ufffd]",
        ),
    ),
]

# Modules that move.

SAME = "test_module_moves.py::test_parameters_stay_the_same"

MODULES = [
    Fault(
        "a module that moves gets new parameters",
        "include/backendkit/shallow_copy.h",
        "(is_dense(self) && is_dense(from))",
        "false",
        (
            f"{SAME}[cpu to device-to]",
            f"{SAME}[device to cpu-to]",
            "test_module_moves.py::test_an_optimizer_trains_what_moves[Adam-before]",
            "test_set_data.py::test_fully_sharded_data_parallel",
        ),
    ),
    Fault(
        "modes of Python see the question for a parameter",
        "include/backendkit/shallow_copy.h",
        "if (!has_kernel(kOperator)) aten.impl(kOperator, &is_possible);",
        "static_cast<void>(aten);",
        ("test_set_data.py::test_modes_of_python_do_not_see_the_question",),
    ),
    Fault(
        "a sparse tensor takes over a device without the numbers",
        "include/backendkit/shallow_copy.h",
        "is_compressed(self) && self.device() != from.device()",
        "false",
        (
            "test_set_data.py::test_compressed_tensors[sparse_csr-places0]",
            "test_set_data.py::test_compressed_tensors[sparse_csr-places2]",
        ),
    ),
    Fault(
        "a lazy module is not moved by the device's name",
        "torch_foo/_loader.py",
        "getattr(torch.Tensor, _build.DEVICE)",
        "torch.Tensor.cuda",
        ("test_module_moves.py::test_lazy_modules[LazyLinear-by_name]",),
    ),
]

# Programs that use only the CPU.

CPU_PROGRAMS = [
    Fault(
        "a process group by default is one for the device",
        "torch_foo/_defaults.py",
        "str(backend) != c10d.Backend.UNDEFINED or _has_group(c10d)",
        "True",
        ("test_cpu_programs.py::test_a_process_group_by_default_is_that_of_the_cpu",),
    ),
    Fault(
        "a profile of the CPU lists the device's operators",
        "torch_foo/_device.py",
        "device is None and not is_initialized() and device_count() > 0",
        "False",
        ("test_cpu_programs.py::test_a_profile_of_the_cpu_has_nothing_of_the_device",),
    ),
    Fault(
        "modules in parallel are copied to devices",
        "torch_foo/_defaults.py",
        "None if found == _NAME else found",
        "found",
        ("test_cpu_programs.py::test_data_parallel_calls_its_module",),
    ),
    Fault(
        "waiting for the accelerator starts it",
        "include/backendkit/device/device.h",
        "if (!used()) return;",
        "use();",
        ("test_cpu_programs.py::test_waiting_for_the_accelerator_does_not_start_it",),
    ),
]

# The place that PyTorch has for a backend.

PLACE = [
    Fault(
        "the library does not give the device its name",
        "include/backendkit/claim.h",
        "c10::register_privateuse1_backend(name);",
        "static_cast<void>(name);",
        ("test_library.py::test_it_gives_the_device_its_name",),
    ),
    Fault(
        "a device of another name is not looked for",
        "include/backendkit/claim.h",
        "c10::is_privateuse1_backend_registered() && taken != name",
        "false",
        ("test_library.py::test_it_leaves_pytorch_to_a_device_of_another_name",),
    ),
    Fault(
        "a library that has registered the device is not looked for",
        "include/backendkit/claim.h",
        "at::isPrivateUse1HooksRegistered() || c10::impl::hasDeviceGuardImpl(kDeviceType)",
        "false",
        ("test_library.py::test_a_second_copy_registers_nothing",),
    ),
    Fault(
        "the package does not ask whether its library registered the device",
        "torch_foo/_loader.py",
        "why is not None",
        "False",
        ("test_library.py::test_the_package_says_that_another_copy_is_open",),
    ),
]

# What a caller sees of an operator beside its numbers, and packages that pick the device.

LIKENESS = [
    Fault(
        "composite operators of PyTorch come before the fallback",
        "include/backendkit/composites.h",
        "!has_pieces",
        "false",
        (
            "test_composites.py::test_group_norm",
            "test_composites.py::test_layer_norm",
            "test_composites.py::test_what_is_decided_falls_back",
        ),
    ),
    Fault(
        "results written into do not get the conjugate bit",
        "include/backendkit/fallback/host_memory.h",
        "tensor._set_conj(host.is_conj());",
        "static_cast<void>(tensor);",
        ("test_likeness.py::test_solutions_of_complex_systems",),
    ),
    Fault(
        "the CPU does not know that a gradient will be needed",
        "include/backendkit/fallback.h",
        'op.schema().name() == "aten::_sparse_mm_reduce_impl"',
        "false",
        ("test_likeness.py::test_gradients_of_reducing_products_of_sparse_matrices",),
    ),
    Fault(
        "a number is read of a tensor without elements",
        "include/backendkit/tensors.h",
        "self.numel() > 0",
        "true",
        ("test_likeness.py::test_numbers_out_of_tensors",),
    ),
    Fault(
        "memory cannot be shared until it is written to",
        "include/backendkit/tensors.h",
        "!Allocator<Runtime>::make_shareable(storage)",
        "static_cast<void>(storage), false",
        ("test_likeness.py::test_a_lazy_clone_shares_until_it_is_written_to",),
    ),
    Fault(
        "operators that only read make a copy of shared memory",
        "include/backendkit/fallback/host_memory.h",
        "pair.out.empty() && pair.scattered.empty()",
        "false",
        ("test_likeness.py::test_a_lazy_clone_shares_until_it_is_written_to",),
    ),
    Fault(
        "memory that was shared is never given back",
        "include/backendkit/allocator.h",
        "free_block(block);",
        "static_cast<void>(block);",
        ("test_likeness.py::test_a_lazy_clone_shares_until_it_is_written_to",),
    ),
    Fault(
        "streams are not known to use shared memory",
        "include/backendkit/allocator.h",
        "if (found == by_address().blocks.end()) return nullptr;",
        "return nullptr;",
        ("test_likeness.py::test_the_memory_of_lazy_clones_that_a_stream_uses_is_kept",),
    ),
    Fault(
        "a tensor in a queue loses that it requires a gradient",
        "torch_foo/_sharing.py",
        "made.requires_grad_(requires_grad)",
        "made",
        ("test_sharing.py::test_tensors_arrive",),
    ),
    Fault(
        "a tensor in a queue arrives on the first device",
        "torch_foo/_sharing.py",
        "one.device.index, one.requires_grad",
        "0, one.requires_grad",
        ("test_sharing.py::test_a_tensor_of_another_device",),
    ),
    Fault(
        "Lightning puts models on the CPU",
        "torch_foo/_lightning.py",
        'chosen != "cpu" or not _device.is_available()',
        "True",
        ("test_frameworks.py::test_lightning_needs_no_strategy_and_no_name",),
    ),
    Fault(
        "Lightning takes the device where only the CPU will do",
        "torch_foo/_lightning.py",
        "not _meets_request(self)",
        "False",
        ("test_frameworks.py::test_lightning_stays_on_the_cpu_with_what_only_works_there",),
    ),
    Fault(
        "a process that starts gets memory that is gone",
        "torch_foo/_sharing.py",
        "process is not None",
        "False",
        ("test_sharing.py::test_tensors_are_arguments_of_processes[file_descriptor]",),
    ),
    Fault(
        "memory that was shared is copied on the current device",
        "include/backendkit/allocator.h",
        "storage.set_allocator(&on_device(where.index()));",
        "static_cast<void>(on_device);",
        ("test_likeness.py::test_a_lazy_clone_is_copied_on_its_own_device",),
    ),
    Fault(
        "attention is made of small operators",
        "include/backendkit/fallback/attention.h",
        "return small ? kMath : at::native::_fused_sdp_choice_cpp(arguments...);",
        "return kMath;",
        ("test_likeness.py::test_attention_has_the_layout_of_the_cpu",),
    ),
    Fault(
        "the Trainer of Transformers leaves models on the CPU",
        "torch_foo/_hugging_face.py",
        "torch.device(_NAME, 0)",
        "found",
        ("test_hugging_face.py::test_trainer_trains_evaluates_and_resumes",),
    ),
    Fault(
        "Accelerate refuses float16",
        "torch_foo/_hugging_face.py",
        "(*one, _NAME)",
        "one",
        ("test_hugging_face.py::test_accelerate_s_float16",),
    ),
    Fault(
        "safetensors does not know another device",
        "torch_foo/_hugging_face.py",
        "int(index) if index else int(_device.current_device())",
        "0",
        ("test_hugging_face.py::test_safetensors_of_another_device",),
    ),
]
