# SPDX-License-Identifier: Apache-2.0
"""Makes files outside docs/ part of the site, where a page links to them.

On a forge, a page of docs/ links to `../examples/kernels`. The site has no forge, so it has these
files as pages of its own: Markdown as it is, a folder by its README.md, other files as code.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
#: A warning is an error of a strict build.
log = logging.getLogger("mkdocs.plugins.outside")

_CODE = re.compile(r"(^(?: *)(`{3,}).*?^ *\2`*$|`[^`\n]+`)", re.M | re.S)
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
_SHIM = "https://unpkg.com/iframe-worker/shim"
_LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".toml": "toml", ".cmake": "cmake"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    waiting = [
        (f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()
    ]
    while waiting:
        origin, text = waiting.pop()
        for target in _links(text, origin):
            uri = _uri(target)
            if target.startswith("docs/") or files.get_file_from_path(uri):
                continue
            if not (ROOT / _file(target)).is_file():
                log.warning(f"{origin} links to {target}, which is no file, nor has a README.md")
                continue
            content = _page(_file(target))
            added = File.generated(config, uri, content=content)
            added.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(added)
            waiting.append((_file(target), content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    origin = _origin(uri)
    here = posixpath.dirname(uri)

    def on_the_site(link: str) -> str:
        target = _resolve(link, origin)
        if origin.startswith("docs/") and target.startswith("docs/"):
            return link  # MkDocs checks and converts it
        return posixpath.relpath(_uri(target), here or ".")

    return _map_links(markdown, on_the_site)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    here = posixpath.dirname(page.file.dest_uri)
    return _with_own_worker(output, posixpath.relpath("worker.js", here or "."))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return _with_own_worker(output, "/worker.js")  # 404.html, which servers give for any address


def _with_own_worker(page: str, address: str) -> str:
    """The page with a script of the site's own for the one that would come from another host."""
    return re.sub(rf'src="?{re.escape(_SHIM)}"?', f'src="{address}"', page)


def _map_links(text: str, change: Callable[[str], str]) -> str:
    parts = _CODE.split(text)
    # Two groups: text, code, its fence, text, ...
    parts[::3] = [_LINK.sub(lambda link: change(link[1]), part) for part in parts[::3]]
    return "".join(part for number, part in enumerate(parts) if number % 3 != 2)


def _links(text: str, origin: str) -> list[str]:
    """The places in the repository to which a page of the repository links."""
    found: list[str] = []

    def remember(link: str) -> str:
        found.append(_resolve(link, origin))
        return link

    _map_links(text, remember)
    return found


def _resolve(link: str, origin: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _file(target: str) -> str:
    """The file that stands for a place in the repository."""
    return f"{target}/README.md" if (ROOT / target).is_dir() else target


def _uri(target: str) -> str:
    """The name of the page, among those of docs/, that shows a place in the repository."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    file = _file(target)
    return f"tree/{file}" if file.endswith(".md") else f"tree/{file}.md"


def _origin(uri: str) -> str:
    """The file of the repository that a page shows."""
    if not uri.startswith("tree/"):
        return f"docs/{uri}"
    name = uri.removeprefix("tree/")
    return name if (ROOT / name).is_file() else name.removesuffix(".md")


def _page(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".md"):
        return text
    # No line of a source file begins with so many.
    fence = "`" * 8
    return f"# {name}\n\n{fence}{_LANGUAGES.get(Path(name).suffix, 'text')}\n{text}{fence}\n"
