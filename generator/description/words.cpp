// SPDX-License-Identifier: Apache-2.0
#include "description/words.h"

#include <algorithm>

namespace backendgen {
namespace {

// Each list is sorted.

// With `linux` and `unix`, which GNU compilers define as macros unless told not to.
// clang-format off
constexpr std::string_view kCppKeywords[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
    "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "linux", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
    "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
    "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast",
    "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "typeof", "union", "unix", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "xor_eq",
};

constexpr std::string_view kPythonKeywords[] = {
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
};

constexpr std::string_view kPythonModules[] = {
    "abc", "aifc", "annotationlib", "antigravity", "argparse", "array", "ast", "asynchat",
    "asyncio", "asyncore", "atexit", "audioop", "base64", "bdb", "binascii", "binhex", "bisect",
    "builtins", "bz2", "cProfile", "calendar", "cgi", "cgitb", "chunk", "cmath", "cmd", "code",
    "codecs", "codeop", "collections", "colorsys", "compileall", "compression", "concurrent",
    "configparser", "contextlib", "contextvars", "copy", "copyreg", "crypt", "csv", "ctypes",
    "curses", "dataclasses", "datetime", "dbm", "decimal", "difflib", "dis", "distutils", "doctest",
    "email", "encodings", "ensurepip", "enum", "errno", "faulthandler", "fcntl", "filecmp",
    "fileinput", "fnmatch", "formatter", "fractions", "ftplib", "functools", "gc", "genericpath",
    "getopt", "getpass", "gettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac",
    "html", "http", "idlelib", "imaplib", "imghdr", "imp", "importlib", "inspect", "io",
    "ipaddress", "itertools", "json", "keyword", "lib2to3", "linecache", "locale", "logging",
    "lzma", "mailbox", "mailcap", "marshal", "math", "mimetypes", "mmap", "modulefinder", "msilib",
    "msvcrt", "multiprocessing", "netrc", "nis", "nntplib", "nt", "ntpath", "nturl2path", "numbers",
    "opcode", "operator", "optparse", "os", "ossaudiodev", "parser", "pathlib", "pdb", "pickle",
    "pickletools", "pipes", "pkgutil", "platform", "plistlib", "poplib", "posix", "posixpath",
    "pprint", "profile", "pstats", "pty", "pwd", "py_compile", "pyclbr", "pydoc", "pydoc_data",
    "pyexpat", "queue", "quopri", "random", "re", "readline", "reprlib", "resource", "rlcompleter",
    "runpy", "sched", "secrets", "select", "selectors", "shelve", "shlex", "shutil", "signal",
    "site", "smtpd", "smtplib", "sndhdr", "socket", "socketserver", "spwd", "sqlite3",
    "sre_compile", "sre_constants", "sre_parse", "ssl", "stat", "statistics", "string",
    "stringprep", "struct", "subprocess", "sunau", "symbol", "symtable", "sys", "sysconfig",
    "syslog", "tabnanny", "tarfile", "telnetlib", "tempfile", "termios", "test", "textwrap", "this",
    "threading", "time", "timeit", "tkinter", "token", "tokenize", "tomllib", "trace", "traceback",
    "tracemalloc", "tty", "turtle", "turtledemo", "types", "typing", "unicodedata", "unittest",
    "urllib", "uu", "uuid", "venv", "warnings", "wave", "weakref", "webbrowser", "winreg",
    "winsound", "wsgiref", "xdrlib", "xml", "xmlrpc", "zipapp", "zipfile", "zipimport", "zlib",
    "zoneinfo",
};

// What an environment with PyTorch has, as modules and as projects: pip and what builds, what
// PyTorch needs, and what is often beside it. A project of one name replaces the other.
constexpr std::string_view kPackages[] = {
    "accelerate", "aiohttp", "attr", "attrs", "audioread", "backports", "build_meta", "certifi",
    "cffi", "charset_normalizer", "click", "cmake", "coverage", "cupy", "cython", "dateutil",
    "deepspeed", "diffusers", "easy_install", "executorch", "expecttest", "filelock", "flask", "fsspec",
    "google", "grpc", "huggingface_hub", "hypothesis", "idna", "ipykernel", "ipython", "jax", "jaxlib",
    "jinja2", "joblib", "jupyter", "keras", "lightning", "lightning_utilities", "markupsafe",
    "matplotlib", "mpmath", "mypy", "networkx", "ninja", "numba", "numpy", "nvidia", "onnx",
    "onnxruntime", "onnxscript", "opt_einsum", "optree", "packaging", "pandas", "pathspec", "peft",
    "pillow", "pip", "pkg_resources", "pluggy", "protobuf", "psutil", "py", "pyarrow", "pybind11",
    "pydantic", "pygments", "pytest", "python", "python_dateutil", "pytorch", "pytorch_lightning",
    "pytz", "pyyaml", "ray", "regex", "requests", "rich", "ruff", "safetensors", "scikit_build",
    "scikit_build_core", "scikit_learn", "scipy", "sentencepiece", "setuptools", "setuptools_scm",
    "site_packages", "six", "skbuild", "sklearn", "sympy", "tensorboard", "tensorflow", "timm",
    "tokenizers", "tomli", "torchao", "torchaudio", "torchdata", "torchmetrics", "torchrun",
    "torchtext", "torchtune", "torchvision", "tqdm", "transformers", "triton", "typing_extensions",
    "urllib3", "uv", "virtualenv", "wheel", "yaml", "zmq",
};

// Programs that an environment with PyTorch has in its `bin`, words of shells, and what systems and
// builds are made of. Those with versions in their names are told by their beginnings.
constexpr std::string_view kPrograms[] = {
    "activate", "alias", "ar", "as", "auditwheel", "awk", "backendgen", "base64", "basename", "bash",
    "bg", "break", "builtin", "cargo", "case", "cat", "cc", "ccache", "cd", "chmod", "chown", "clang",
    "clear", "cmake", "command", "conda", "continue", "convert-onnx-to-caffe2", "cp", "cpack", "ctest",
    "curl", "cut", "cython", "dash", "date", "dd", "deactivate", "declare", "df", "diff", "dirname",
    "do", "docker", "done", "du", "echo", "elif", "else", "enable", "env", "esac", "eval", "exec",
    "exit", "export", "expr", "f2py", "false", "fg", "fi", "file", "find", "fish", "for", "function",
    "gcc", "gdb", "git", "grep", "gzip", "hash", "head", "help", "history", "hostname", "id", "if",
    "in", "install", "isympy", "jobs", "jupyter", "kill", "ld", "ldconfig", "ldd", "less", "let", "ln",
    "local", "ls", "make", "man", "mkdir", "mktemp", "mount", "mv", "mypy", "ninja", "nm", "node",
    "nproc", "numpy-config", "nvcc", "nvidia-smi", "objdump", "patch", "patchelf", "perl", "pkg-config",
    "popd", "printf", "ps", "pushd", "pwd", "py", "py.test", "pytest", "read", "readelf", "readlink",
    "readonly", "realpath", "reset", "return", "rm", "rmdir", "ruff", "scp", "sed", "select", "seq",
    "set", "sh", "shift", "sleep", "sort", "source", "ssh", "stat", "strip", "su", "sudo", "tail",
    "tar", "tee", "test", "then", "time", "torchfrtrace", "torchrun", "touch", "tqdm", "tr", "trap",
    "true", "type", "ulimit", "umask", "unalias", "uname", "uniq", "unset", "until", "uv", "uvx",
    "virtualenv", "wait", "wc", "wget", "which", "while", "who", "xargs", "zsh",
};

constexpr std::string_view kTorchDevices[] = {
    "cpu", "cuda", "cudnn", "fpga", "hip", "hpu", "ideep", "ipu", "lazy", "maia", "meta", "metal",
    "mkldnn", "mps", "mtia", "opencl", "opengl", "privateuse1", "privateuseone", "ve", "vulkan",
    "xla", "xpu",
};

// Of PyTorch's builds, of its tests, and what it calls the others. A name in capitals is an
// attribute of `torch.distributed.Backend`.
constexpr std::string_view kProcessGroups[] = {
    "custom", "fake", "gloo", "mpi", "nccl", "threaded", "ucc", "undefined", "xccl",
};
// clang-format on

}  // namespace

bool is_cpp_keyword(std::string_view word) {
  return std::ranges::binary_search(kCppKeywords, word);
}

bool is_python_keyword(std::string_view word) {
  return std::ranges::binary_search(kPythonKeywords, word);
}

bool is_standard_python_module(std::string_view name) {
  return std::ranges::binary_search(kPythonModules, name);
}

bool is_known_package(std::string_view name) {
  return std::ranges::binary_search(kPackages, name);
}

bool is_program(std::string_view name) {
  constexpr std::string_view kWithVersion[] = {"easy_install", "idle",   "pip",
                                               "pydoc",        "python", "wheel"};
  for (const std::string_view program : kWithVersion) {
    if (!name.starts_with(program)) continue;
    const std::string_view rest = name.substr(program.size());
    if (rest.find_first_not_of("-.0123456789") == rest.npos) return true;
  }
  return std::ranges::binary_search(kPrograms, name);
}

bool is_process_group(std::string_view name) {
  return std::ranges::binary_search(kProcessGroups, name);
}

bool is_torch_device(std::string_view name) {
  return std::ranges::binary_search(kTorchDevices, name);
}

}  // namespace backendgen
