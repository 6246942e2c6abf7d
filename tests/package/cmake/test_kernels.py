# SPDX-License-Identifier: Apache-2.0
"""A kernel that is not the one declared ends the build: it does not compile, or does not link."""

import pytest

DESCRIPTION = """\
[backend]
name = "foo"
version = "0.1.0"

[operators.kernels]
"add.out" = "foo::add"
"""
RIGHT = "const at::Tensor&, const at::Tensor&, const at::Scalar&, const at::Tensor&"
DOUBLE = "const at::Tensor&, const at::Tensor&, double, const at::Tensor&"


@pytest.fixture(scope="module")
def project(built):
    """The project that is built, with one kernel in its description until the tests end."""
    files = [built.source / "backend.toml", built.source / "csrc" / "kernels.cpp"]
    before = [file.read_text() for file in files]
    files[0].write_text(DESCRIPTION)
    yield built
    for file, text in zip(files, before):
        file.write_text(text)
    assert built.make().returncode == 0


def build(project, kernel, *options):
    (project.source / "csrc" / "kernels.cpp").write_text(f'#include "kernels.h"\n\n{kernel}\n')
    return project.make(*options)


@pytest.mark.parametrize(
    "kernel, error",
    [
        (f"void foo::add({DOUBLE}) {{}}", "3:6: error: "),
        (f"namespace foo {{\nvoid add({DOUBLE}) {{}}\n}}", "4:6: error: "),
    ],
    ids=["qualified", "in its namespace"],
)
def test_a_wrong_signature_is_a_compile_error(project, kernel, error):
    made = build(project, kernel, "--target", "CMakeFiles/foo.dir/csrc/kernels.cpp.o")
    assert made.returncode != 0
    assert f"csrc/kernels.cpp:{error}" in made.stdout


def test_a_missing_kernel_is_a_link_error(project):
    made = build(project, "")
    assert made.returncode != 0
    assert "Linking CXX shared library" in made.stdout
    tensor = "at::Tensor const&"
    missing = f"foo::add({tensor}, {tensor}, c10::Scalar const&, {tensor})"
    assert f"undefined reference to `{missing}'" in made.stdout
    kernel = f"void foo::add({RIGHT}) {{}}"
    made = build(project, kernel)
    assert made.returncode == 0, made.stdout
