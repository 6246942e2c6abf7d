# SPDX-License-Identifier: Apache-2.0
"""Runs a module of the package backendkit_tools, whose sources are on the command line.

    python -c BOOT COUNT NAME... SOURCE... MODULE ARGUMENT...

has COUNT names of modules and then the text of each, so that backendgen, which carries the package,
needs no file beside itself and leaves none. `python -c` puts the working folder first on Python's
path as an empty entry: the modules that happen to lie there are not meant.
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry]

import importlib.abc  # noqa: E402
import importlib.util  # noqa: E402
import runpy  # noqa: E402

PACKAGE = "backendkit_tools"
count = int(sys.argv[1])
names = sys.argv[2 : 2 + count]
texts = dict(zip(names, sys.argv[2 + count : 2 + 2 * count]))
module, *arguments = sys.argv[2 + 2 * count :]


class Sources(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
    """Finds the modules of the package among the texts."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != PACKAGE and fullname not in texts:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=fullname == PACKAGE)

    def get_source(self, fullname):
        return texts.get(fullname, "")

    def is_package(self, fullname):
        return fullname == PACKAGE


sys.meta_path.insert(0, Sources())
sys.argv[:] = [module, *arguments]
runpy.run_module(f"{PACKAGE}.{module}", run_name="__main__")
