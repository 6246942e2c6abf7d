// SPDX-License-Identifier: Apache-2.0
#include "description/validate.h"

#include <string>
#include <vector>

#include "catch.h"
#include "description/torch_names.h"

using namespace backendgen;

namespace {

using Judge = std::optional<Complaint> (*)(std::string_view);

std::string complaint(Judge judge, std::string_view text) {
  const auto found = judge(text);
  return found ? found->message : "";
}

std::string help(Judge judge, std::string_view text) {
  const auto found = judge(text);
  return found ? found->help : "";
}

struct Rule {
  const char* name;
  Judge judge;
};

const std::vector<Rule> kStrict = {
    {"device", judge_device_name},
    {"package", judge_package_name},
    {"version", judge_version},
    {"C++ name", judge_cpp_name},
    {"header", judge_header},
    {"module", judge_python_module},
    {"requirement", judge_torch_requirement},
    {"requirement of a package", judge_package_requirement},
    {"distribution", judge_distribution_name},
    {"operator", judge_operator},
    {"group", judge_entry_point_group},
    {"entry", judge_entry_point_name},
    {"target", judge_entry_point_target},
};

}  // namespace

TEST_CASE("nothing that means something in a generated language gets through") {
  const std::vector<std::string> hostile = {"\"",
                                            "'",
                                            "\\",
                                            "`",
                                            "\n",
                                            "\r",
                                            "\t",
                                            " ",
                                            ";",
                                            "$",
                                            "${X}",
                                            "$<X>",
                                            "{{x}}",
                                            "{",
                                            "}",
                                            "]]",
                                            "[",
                                            "*/",
                                            "/*",
                                            "//",
                                            "#",
                                            "%",
                                            "&",
                                            "|",
                                            "@",
                                            "?",
                                            "(",
                                            ")",
                                            "..",
                                            "~",
                                            "^",
                                            std::string("\0", 1),
                                            "\x1B",
                                            "\x7F",
                                            "\xC2\x85",
                                            "\xE2\x80\xA8",
                                            "\xE2\x80\xAE",
                                            "\xEF\xBB\xBF",
                                            "\xC3\xA9",
                                            "\xFF"};
  const std::vector<std::string> good = {
      "kite",  "torch_kite",   "0.1.0",   "kite::Runtime", "a/kite.h", "torch_kite.a", ">=2.5",
      ">=4.2", "kite-runtime", "add.out", "a.b",           "kite-smi", "a.b:c.d"};
  for (std::size_t i = 0; i < kStrict.size(); ++i) {
    INFO(kStrict[i].name);
    REQUIRE_FALSE(kStrict[i].judge(good[i]));
    for (const std::string& text : hostile) {
      // Two dots are harmless within a name, and "/../" is tested below.
      const bool dots =
          kStrict[i].judge == judge_entry_point_name || kStrict[i].judge == judge_header;
      if (dots && text == "..") continue;
      INFO(text);
      CHECK(kStrict[i].judge(good[i] + text));
      CHECK(kStrict[i].judge(text + good[i]));
      CHECK(kStrict[i].judge(good[i].substr(0, 1) + text + good[i].substr(1)));
    }
    CHECK(kStrict[i].judge(""));
    CHECK(kStrict[i].judge(std::string(100'000, 'a')));
  }
}

TEST_CASE("device names") {
  for (const char* name : {"foo", "kite", "npu", "a", "my_kite", "kite_", "match"}) {
    INFO(name);
    CHECK_FALSE(judge_device_name(name));
  }
  CHECK(complaint(judge_device_name, "3dfx") == "it starts with a digit");
  CHECK(complaint(judge_device_name, "Kite") == "it has a capital letter");
  CHECK(help(judge_device_name, "Kite") == "write `kite`");
  CHECK(help(judge_device_name, "My-Kite") == "write `my_kite`");
  CHECK(complaint(judge_device_name, "_kite") == "it starts with `_`");
  CHECK(complaint(judge_device_name, "class") == "it is a keyword of C++");
  CHECK(complaint(judge_device_name, "lambda") == "it is a keyword of Python");
  CHECK(complaint(judge_device_name, "a__b") == "C++ reserves names with `__`");
  CHECK(complaint(judge_device_name, std::string(33, 'k')) == "it is longer than 32 characters");
  CHECK_FALSE(judge_device_name(std::string(32, 'k')));
  for (const char* name : {"npu7", "x86", "a1b", "npu_7", "n7_7pu"}) {
    INFO(name);
    CHECK(complaint(judge_device_name, name) ==
          "it has a digit, and PyTorch reads letters and `_` only");
  }
  CHECK(help(judge_device_name, "npu_7") == "write `npu`");
  CHECK(help(judge_device_name, "n7_7pu") == "write `n_pu`");
  CHECK(help(judge_device_name, "cuda2").empty());
  CHECK(help(judge_device_name, "x86_64").empty());
  for (const char* name : {"errno", "stdout", "main", "size_t", "daemon", "offsetof"}) {
    INFO(name);
    CHECK(complaint(judge_device_name, name) ==
          "C has a global `" + std::string(name) + "`, so a C++ namespace cannot be called that");
  }
  CHECK(complaint(judge_device_name, "clean") == "CMake has a target of that name");
  CHECK(complaint(judge_device_name, "pthread") == "the linker has a library of that name");
  for (const char* name :
       {"cpu",  "cuda", "mkldnn", "opengl",        "opencl",      "ideep", "hip",  "ve",
        "fpga", "maia", "xla",    "lazy",          "vulkan",      "mps",   "meta", "hpu",
        "mtia", "xpu",  "ipu",    "privateuseone", "PrivateUse1", "CUDA"}) {
    INFO(name);
    CHECK(complaint(judge_device_name, name) == "PyTorch has a device of that name");
  }
  CHECK(complaint(judge_device_name, "fft") == "`torch.fft` is a module of PyTorch");
  CHECK(complaint(judge_device_name, "add") == "`torch.add` is a name of PyTorch");
  CHECK(complaint(judge_device_name, "view") == "`torch.Tensor.view` is a name of PyTorch");
  CHECK(complaint(judge_device_name, "leaf") == "`torch.Tensor.is_leaf` is a name of PyTorch");
  CHECK(complaint(judge_device_name, "train") == "`torch.nn.Module.train` is a name of PyTorch");
  CHECK(complaint(judge_device_name, "filename") ==
        "`torch.Storage.filename` is a name of PyTorch");
}

TEST_CASE("names of PyTorch") {
  CHECK(find_torch_name("accelerator")->path == "torch.accelerator");
  CHECK(std::string(find_torch_name("accelerator")->kind) == "a module");
  CHECK(find_torch_name("zeros"));
  CHECK(find_torch_name("abs"));
  CHECK_FALSE(find_torch_name("kite"));
  CHECK_FALSE(find_torch_name(""));
}

TEST_CASE("package names") {
  for (const char* name : {"torch_foo", "foo_frameworks", "foo", "kite2"}) {
    INFO(name);
    CHECK_FALSE(judge_package_name(name));
  }
  CHECK(complaint(judge_package_name, "torch") == "that is a package of PyTorch");
  CHECK(complaint(judge_package_name, "json") == "Python has a module of that name");
  CHECK(complaint(judge_package_name, "zoneinfo") == "Python has a module of that name");
  CHECK(complaint(judge_package_name, "backendkit") == "that is the package of BackendKit");
  CHECK(complaint(judge_package_name, "foo.bar") == "it has a `.`");
  CHECK(complaint(judge_package_name, "import") == "it is a keyword of Python");
  CHECK(help(judge_package_name, "Torch-Foo") == "write `torch_foo`");
  for (const char* name : {"test", "sitecustomize", "usercustomize", "this"}) {
    INFO(name);
    CHECK(judge_package_name(name));
  }
  for (const char* name : {"pip", "setuptools", "numpy", "sympy", "wheel", "pyyaml", "sklearn"}) {
    INFO(name);
    CHECK(complaint(judge_package_name, name) == "another package has that name");
  }
  for (const char* name : {"tests", "csrc", "build", "setup"}) {
    INFO(name);
    CHECK(complaint(judge_package_name, name) == "projects have a folder or a file of that name");
  }
  CHECK(complaint(judge_package_name, "torch_cpu") == "PyTorch has a library of that name");
  CHECK(complaint(judge_package_name, "torch_foo_") == "it ends with `_`, which pip refuses");
  CHECK(help(judge_package_name, "torch_foo_") == "write `torch_foo`");
}

TEST_CASE("versions") {
  for (const char* version : {"0.1.0", "1", "0", "2026.11", "1.0a0", "1.0b2", "1.0rc1", "1.0.post1",
                              "1.0.dev3", "1!2.0rc1.post3.dev4", "1.2.3.4.5"}) {
    INFO(version);
    CHECK_FALSE(judge_version(version));
  }
  for (const char* version : {"1.", ".1", "1..0", "1.0rc", "1.0c1", "1.0-1", "1.0.RC1", "01",
                              "1.00", "1.0.post", "1.0.dev", "1.0dev1", "1!", "x", "1.0.dev1.post1",
                              "1.0.0000000001", "1234567890", "v1.0", "1.0+cpu"}) {
    INFO(version);
    CHECK(judge_version(version));
  }
  CHECK(help(judge_version, "v1.0") == "write `1.0`");
  CHECK(help(judge_version, "1.0+cpu") == "write `1.0`");
}

TEST_CASE("summaries may hold any printable line") {
  for (const char* summary :
       {"PyTorch backend for Foo devices", "it's \"quoted\" {{x}} ${X} $<Y> ]] */ \\",
        "\xC3\xBC \xE9\xA2\xA8"}) {
    INFO(summary);
    CHECK_FALSE(judge_summary(summary));
  }
  CHECK(complaint(judge_summary, "a\nb") == "it has more than one line");
  CHECK(complaint(judge_summary, "a\rb") == "it has more than one line");
  CHECK(complaint(judge_summary, "a\xE2\x80\xAE") == "it has the character U+202E");
  CHECK(complaint(judge_summary, "a\xE2\x80\xA8") == "it has the character U+2028");
  CHECK(complaint(judge_summary, "a\xC2\x85") == "it has the character U+0085");
  CHECK(complaint(judge_summary, std::string_view("a\0b", 3)) == "it has the character U+0000");
  CHECK(complaint(judge_summary, "a\xFF") == "it is not UTF-8");
  CHECK(complaint(judge_summary, " a") == "it starts or ends with a blank");
  std::string long_text;
  for (int i = 0; i < 200; ++i) long_text += "\xC3\xBC";
  CHECK_FALSE(judge_summary(long_text));
  CHECK(complaint(judge_summary, long_text + "x") == "it is longer than 200 characters");
}

TEST_CASE("C++ names") {
  for (const char* name : {"Runtime", "foo::Runtime", "a::b::c", "_x", "x_", "CamelCase2",
                           "foo::time", "foo::std::x", "my_std::x", "foo::GEMM", "PRIORITY"}) {
    INFO(name);
    CHECK_FALSE(judge_cpp_name(name));
  }
  CHECK(complaint(judge_cpp_name, "foo::new") == "`new` is a keyword of C++");
  CHECK(complaint(judge_cpp_name, "foo::__x") == "C++ reserves names such as `__x`");
  CHECK(complaint(judge_cpp_name, "a__b") == "C++ reserves names such as `a__b`");
  CHECK(complaint(judge_cpp_name, "_X") == "C++ reserves names such as `_X`");
  CHECK(complaint(judge_cpp_name, "foo:::x") == "it has a `:`");
  CHECK(complaint(judge_cpp_name, "foo::") == "a part of it is empty");
  CHECK(help(judge_cpp_name, "::foo::x") == "write `foo::x`");
  for (const char* name : {"foo::NULL", "foo::errno", "foo::assert", "INT_MAX::x", "EOF",
                           "foo::TORCH_CHECK", "foo::PRId64", "foo::INT_WIDTH", "foo::major"}) {
    INFO(name);
    CHECK(complaint(judge_cpp_name, name).ends_with("` is a macro"));
  }
  CHECK(complaint(judge_cpp_name, "std::x") == "`std` is a namespace of C++");
  CHECK(complaint(judge_cpp_name, "at::native::x") == "`at` is a namespace of PyTorch");
  for (const char* name : {"c10::x", "torch::x", "caffe2::x", "backendkit::x", "posix::x"}) {
    INFO(name);
    CHECK(help(judge_cpp_name, name) == "put it in a namespace of your own");
  }
  CHECK(complaint(judge_cpp_name, "stdout::x") == "C has a global `stdout`");
  CHECK(complaint(judge_cpp_name, "int32_t") == "C has a global `int32_t`");
}

TEST_CASE("headers stay below the project") {
  for (const char* path : {"runtime.h", "foo/run-time++.hpp", "a/b/c.h", "..h", "a..b/c"}) {
    INFO(path);
    CHECK_FALSE(judge_header(path));
  }
  for (const char* path :
       {"/a.h", "C:/a.h", "c:a.h", "../a.h", "a/../b.h", "a/..", "./a.h", "a//b.h", "a/"}) {
    INFO(path);
    CHECK(judge_header(path));
  }
}

TEST_CASE("requirements of PyTorch") {
  for (const char* text : {">=2.5", ">=2.5,<2.15", "==2.13.0", "!=2.6.0,>2.5", "<=3.0"}) {
    INFO(text);
    CHECK_FALSE(judge_torch_requirement(text));
  }
  for (const char* text : {"2.5", "~=2.5", ">=2", ">=2.5.1.1", ">=2.5,", ",>=2.5", "=>2.5",
                           ">=2.05", ">=2.5rc1", ">=", "===2.5"}) {
    INFO(text);
    CHECK(judge_torch_requirement(text));
  }
  CHECK(help(judge_torch_requirement, ">= 2.5, < 3.0") == "write `>=2.5,<3.0`");
  for (const char* text : {">=2.9,<=2.9", ">2.5,<2.6", "!=2.7", ">=2.6,!=2.6,<2.6.2", ">2.15",
                           "<2.5.1", "==2.5", ">=1.0"}) {
    INFO(text);
    CHECK_FALSE(judge_torch_requirement(text));
  }
  for (const char* text : {">=2.9,<2.6", "==2.7,!=2.7", "<2.5", "==1.13", ">2.6.0,<2.6.1",
                           "==2.7,==2.8", "<2.5.1,!=2.5", ">2.9,<=2.9"}) {
    INFO(text);
    CHECK(complaint(judge_torch_requirement, text) == "no release of PyTorch from 2.5 on meets it");
  }
}

TEST_CASE("packages with the driver's libraries") {
  for (const char* name : {"foo-runtime", "foo_runtime", "kite2-driver-libs", "kitelibs"}) {
    INFO(name);
    CHECK_FALSE(judge_distribution_name(name));
  }
  for (const char* name : {"foo--runtime", "foo-_runtime", "-foo", "foo-", "Foo-runtime", "foo.rt",
                           "2foo", "torch", "numpy", "nvidia runtime"}) {
    INFO(name);
    CHECK(judge_distribution_name(name));
  }
  CHECK(help(judge_distribution_name, "foo-runtime-") == "write `foo-runtime`");
  for (const char* text : {">=4.2", ">=4.2,<5", "==4", "!=4.2rc1,>4.1.post2", "<1!5"}) {
    INFO(text);
    CHECK_FALSE(judge_package_requirement(text));
  }
  for (const char* text : {"4.2", "~=4.2", "==4.*", ">=4.2,", ">=4.2, <5", ">=v4", "===4"}) {
    INFO(text);
    CHECK(judge_package_requirement(text));
  }
  for (const char* path : {"a", "driver/lib/libfoo.so.4", "lib*/libfoo-*.so.?", "..a/b+c"}) {
    INFO(path);
    CHECK_FALSE(judge_project_library(path));
  }
  for (const char* path :
       {"", "/a", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "a b", "a[0]", "a\\b", "a$"}) {
    INFO(path);
    CHECK(judge_project_library(path));
    CHECK(judge_project_file(path));
  }
  for (const char* text : {"MIT", "(Apache-2.0 OR MIT) AND LicenseRef-Foo", "GPL-2.0+"}) {
    INFO(text);
    CHECK_FALSE(judge_license(text));
  }
  for (const char* text : {"", " MIT", "MIT ", "MIT\nName: x", "MIT/X11", "+", "-MIT", "MIT-"}) {
    INFO(text);
    CHECK(judge_license(text));
  }
}

TEST_CASE("operators and entry points") {
  CHECK_FALSE(judge_operator("_copy_from"));
  CHECK_FALSE(judge_operator("__and__.Tensor"));
  CHECK(help(judge_operator, "aten::add.out") == "write `add.out`");
  CHECK(complaint(judge_operator, "add.") == "there is nothing on one side of the dot");
  CHECK(complaint(judge_operator, "a.b.c") == "it has more than one dot");
  CHECK(complaint(judge_entry_point_group, "torch.backends") ==
        "backendgen writes that group itself");
  CHECK(complaint(judge_entry_point_group, "a..b") == "a part of it is empty");
  CHECK_FALSE(judge_entry_point_name("kite.smi-2"));
  CHECK_FALSE(judge_entry_point_target("a.b"));
  CHECK_FALSE(judge_entry_point_target("a.b:C.d"));
  for (const char* target : {"a:", ":b", "a:b:c", "a:1", "a.class:b", "a:b [extra]", "a.:b"}) {
    INFO(target);
    CHECK(judge_entry_point_target(target));
  }
}

TEST_CASE("names of scripts") {
  for (const char* name : {"kite-smi", "kite.info", "kite_run", "python-kite", "pipe", "a"}) {
    INFO(name);
    CHECK_FALSE(judge_script_name(name));
  }
  for (const char* name :
       {"python", "Python", "python3", "python3.12", "pip", "pip3.11", "torchrun", "sh", "cd",
        "activate", "pytest", "cmake", "wheel", "easy_install-3.9"}) {
    INFO(name);
    CHECK(complaint(judge_script_name, name) == "there is a program of that name");
  }
  CHECK(complaint(judge_script_name, "..") == "it starts with `.`");
  CHECK(complaint(judge_script_name, "-x") == "it starts with `-`");
  CHECK(judge_script_name("a/b"));
}
