# SPDX-License-Identifier: Apache-2.0
"""A whole backend is loaded once, in whatever order and way torch and the package are imported."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import Interpreter, Site

STATE = "import torch_foo; print(torch_foo.is_loaded, torch.foo.is_available())"
LOADED = ["True True"]

ORDERS = {
    "torch first": "import torch; " + STATE,
    "package first": "import torch_foo; import torch; " + STATE,
    "package alone": "import torch_foo; print(torch_foo.is_loaded, True)",
    "name of the package": "from torch_foo import __version__; import torch; " + STATE,
    "vendor's module first": "from torch_foo import extras; import torch; " + STATE,
    "vendor's module by its full name": "import torch_foo.extras; import torch; " + STATE,
    "device module": "import torch.foo; " + STATE,
    "loader first": "import torch_foo._loader; import torch; " + STATE,
    "reload": "import importlib, torch_foo, torch; importlib.reload(torch_foo); " + STATE,
    "reload of a package that came first": (
        "import importlib, torch_foo; importlib.reload(torch_foo); import torch; " + STATE
    ),
    "imported anew": (
        "import sys, torch, torch_foo\n"
        "for name in [n for n in sys.modules if n.startswith('torch_foo')]: del sys.modules[name]\n"
        + STATE
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_order(base: Interpreter, site: Site, order: str) -> None:
    assert base.lines(ORDERS[order], site) == LOADED


@pytest.mark.parametrize("order", ["package first", "package alone", "vendor's module first"])
def test_warnings_are_errors(base: Interpreter, site: Site, order: str) -> None:
    assert base.lines(ORDERS[order], site, flags=("-W", "error")) == LOADED


def test_autoload_off(base: Interpreter, site: Site) -> None:
    code = "import torch; print(hasattr(torch, 'foo')); " + STATE
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert base.lines(code, site, environment=off) == ["False", *LOADED]


def test_autoload_off_and_used_before_the_import(base: Interpreter, site: Site) -> None:
    """Until then nothing of the package runs: PyTorch does not know the name, then it does."""
    code = (
        "import torch\n"
        "try:\n    torch.ones(2, device='foo')\n"
        "except RuntimeError as error:\n    print('device string: foo' in str(error))\n"
        "import torch_foo\n"
        "print((torch.ones(2, device='foo') + 1).tolist())"
    )
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert base.lines(code, site, environment=off) == ["True", "[2.0, 2.0]"]


def test_autoload_off_and_package_first(base: Interpreter, site: Site) -> None:
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    assert base.lines(ORDERS["package first"], site, environment=off) == LOADED


THREADS = """
import importlib, random, sys, threading
random.seed({seed})
sys.setswitchinterval({interval})
names = ["torch", "torch_foo", "torch_foo.extras"]
start, errors = threading.Barrier(20), []
def work(name):
    start.wait()
    try:
        importlib.import_module(name)
        import torch
        assert torch.foo.device_count() > 0 and torch.device("foo").type == "foo"
        assert torch.foo.vendor_name() == "vendor"
    except BaseException as error:
        errors.append((name, repr(error)))
threads = [threading.Thread(target=work, args=(random.choice(names),)) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(errors)
import torch
"""


@pytest.mark.parametrize("autoload", ["1", "0"])
@pytest.mark.parametrize(("seed", "interval"), [(1, 1e-6), (2, 1e-4), (3, 5e-3)])
def test_twenty_threads(
    base: Interpreter, site: Site, seed: int, interval: float, autoload: str
) -> None:
    site.set_constant("IMPORTS", ["torch_foo.extras"])
    vendor = "__all__ = ['vendor_name']\ndef vendor_name(): return 'vendor'\n"
    site.write("extras.py", "import torch\nimport torch_foo\n" + vendor)
    code = THREADS.format(seed=seed, interval=interval)
    if autoload == "0":
        code = code.replace('["torch", ', "[")
    environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload}
    assert base.lines(code + STATE, site, environment=environment) == ["[]", *LOADED]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_subprocess(base: Interpreter, site: Site, method: str) -> None:
    (site.folder / "child.py").write_text(
        "def work(queue):\n"
        "    import torch, torch_foo\n"
        "    queue.put((torch_foo.is_loaded, torch.foo.is_available()))\n"
    )
    code = (
        "import multiprocessing, torch, child\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    queue = context.Queue()\n"
        "    process = context.Process(target=child.work, args=(queue,))\n"
        "    process.start(); print(queue.get(timeout=200)); process.join()\n"
    )
    assert base.lines(code, site) == ["(True, True)"]


def test_from_inside_the_source_folder(base: Interpreter, site: Site, tmp_path: Path) -> None:
    source = tmp_path / "project" / "torch_foo"
    source.mkdir(parents=True)
    (source / "extras.py").write_text("raise RuntimeError('the source, not the package')")
    assert base.lines("import torch; " + STATE, site, folder=source.parent) == LOADED


def test_editable_build_finds_the_vendors_source(
    base: Interpreter, site: Site, tmp_path: Path
) -> None:
    source = tmp_path / "project" / "torch_foo"
    source.mkdir(parents=True)
    (source / "live.py").write_text("value = 'live'")
    site.write("_editable.py", f"SOURCE = {str(source)!r}\n")
    code = (
        "import importlib, torch_foo; importlib.reload(torch_foo); from torch_foo.live import value"
        f"; print(value, torch_foo.__path__.count({str(source)!r}))"
    )
    assert base.lines(code, site) == ["live 1"]


def test_older_build_further_down_the_path(base: Interpreter, new_site) -> None:
    newer, older = new_site(), new_site()
    init = older.package / "__init__.py"
    init.write_text(re.sub(r'__version__ = ".*"', '__version__ = "0.0.1"', init.read_text()))
    shutil.rmtree(older.package / "lib")
    code = "import torch; print(torch.foo.is_available()); import torch_foo as t; "
    lines = base.lines(code + "print(t.__version__ != '0.0.1')", newer, older)
    assert lines == ["True", "True"]


def test_imports_no_heavy_module(base: Interpreter, site: Site) -> None:
    code = (
        "import os, sys\n"
        "os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import torch\n"
        "before = set(sys.modules)\n"
        "import torch_foo\n"
        "print(sorted(n for n in set(sys.modules) - before if not n.startswith('torch_foo')))\n"
    )
    own = ["torch.foo", "torch.foo.memory", "torch.foo.random", "torch.foo.streams"]
    assert base.lines(code, site) == [str(own)]


def test_does_not_ask_for_the_accelerator(base: Interpreter, site: Site) -> None:
    """In a PyTorch with CUDA that starts the driver of CUDA, for which a fork is then too late."""
    code = (
        "import os\n"
        "os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import torch\n"
        "asked, known = [], torch._C._get_accelerator\n"
        "torch._C._get_accelerator = lambda: asked.append(1) or known()\n"
        "import torch_foo\n"
        "print(torch_foo.is_loaded, len(asked), torch._C._get_accelerator().type, len(asked))\n"
    )
    assert base.lines(code, site) == ["True 0 foo 1"]
