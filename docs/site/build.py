"""Builds the site of the documentation into `site/`: `python docs/site/build.py`, which `make docs` does.

The builder reads copies of the pages. There, links that leave the site lead to the repository, Chinese headings have
the anchors of the English ones, and the pages of `reference.py` are written out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

import reference
import yaml
from pymdownx.slugs import slugify

from longthread import __version__
from longthread.documentation import FILES

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {"en": "English", "zh": "中文"}
LATEST = "latest"
"""The name of the newest release, which links from outside use."""
OTHERS = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "examples/plugin/README.md": "how-to/plugin-to-copy.md",
    "evals/README.md": "evals.md",
    "web/README.md": "web.md",
}
"""Pages whose places on the site differ from those in `docs/`."""
_FENCE = re.compile(r"^(```.*?^```)[^\n]*$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"(!\[[^\]]*\])\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_slug: Callable[[str, str], str] = slugify(case="lower")


def main(folder: str = "site") -> None:
    with tempfile.TemporaryDirectory() as work:
        build(ROOT / folder, Path(work))


def build(site: Path, work: Path, release: str = ".".join(__version__.split(".")[:2])) -> None:
    """Build one release of both languages into `site`, which keeps the other releases. What is wrong is an error."""
    for language in LANGUAGES:
        pages = find_pages(language)
        stage(work / language, language, pages, release)
        write_configuration(work, language, pages, release)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", f"{language}.yml"]
        subprocess.run(command, cwd=work, check=True)
        add_release(site / language, work / "site" / language, release)
    shutil.copy(Path(__file__).with_name("languages.html"), site / "index.html")


def find_pages(language: str) -> dict[str, str]:
    """Return the places on the site of a language's pages, by their paths in the repository."""
    if language == "zh":
        found = {path: relpath(path, "docs/zh") for path in _list("docs/zh/**/*.md")}
        return found | {"README.zh-CN.md": "index.md", "docs/zh/README.md": "pages.md"}
    found = {path: relpath(path, "docs") for path in _list("docs/**/*.md") if not path.startswith("docs/zh/")}
    return found | OTHERS | {"docs/decisions": "decisions/index.md"}


def find_pictures(language: str) -> dict[str, str]:
    """Return the places on the site of a language's pictures, by their paths in the repository."""
    root = "docs/zh" if language == "zh" else "docs"
    found = [path for kind in ("png", "svg", "webp") for path in _list(f"{root}/**/*.{kind}")]
    return {path: relpath(path, root) for path in found if language == "zh" or not path.startswith("docs/zh/")}


def stage(folder: Path, language: str, pages: dict[str, str], release: str) -> None:
    """Write the copies of the pages that the builder reads, their pictures, and what is generated."""
    links = Links(language, pages, release)
    for path, place in find_pictures(language).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / place)
    for path, place in pages.items():
        if (ROOT / path).is_dir():
            continue
        text = links.rewrite(path, (ROOT / path).read_text("utf-8"))
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(reference.fill(place, text, language), "utf-8")
    if language == "en":
        reference.write_viewer(folder / "reference/viewer")
        (folder / "decisions/index.md").write_text(_list_decisions(), "utf-8")
    shutil.copy(Path(__file__).with_name("extra.css"), folder / "extra.css")


class Links:
    """Where the links of one language's pages lead on the site."""

    def __init__(self, language: str, pages: dict[str, str], release: str) -> None:
        self._language, self._pages = language, pages
        self._english, self._chinese = find_pages("en"), find_pages("zh")
        self._pictures = find_pictures(language)
        self._release = release

    def rewrite(self, path: str, text: str) -> str:
        """Return a page's text with links that lead somewhere on the site, and with English anchors."""
        parts = _FENCE.split(text)
        parts[::2] = [_LINK.sub(lambda link: self._lead(path, link), part) for part in parts[::2]]
        parts[::2] = [_PICTURE.sub(lambda picture: self._place(path, picture), part) for part in parts[::2]]
        if self._language == "en":
            return "".join(parts)
        anchors = iter(_anchors(ROOT / self._original(path)).values())
        parts[::2] = [_HEADING.sub(lambda heading: f"{heading[0]} {{ #{next(anchors)} }}", part) for part in parts[::2]]
        return "".join(parts)

    def _lead(self, path: str, link: re.Match[str]) -> str:
        words, (target, _, anchor) = link[1], link[2].partition("#")
        if "://" in target:
            return link[0]
        file = normpath(PurePosixPath(path).parent / target) if target else path
        if not (ROOT / file).exists():
            return link[0]  # the builder reports it
        address, anchor = self._find(self._pages[path], file, anchor)
        return f"[{words}]({address}{'#' if anchor else ''}{anchor})" if address or anchor else words

    def _place(self, path: str, picture: re.Match[str]) -> str:
        """Return a picture with the address that it has for a page of the site."""
        file = normpath(PurePosixPath(path).parent / picture[2])
        if file not in self._pictures:
            return picture[0]  # the builder reports it, or it is another host's
        return f"{picture[1]}({relpath(self._pictures[file], PurePosixPath(self._pages[path]).parent)})"

    def _find(self, here: str, file: str, anchor: str) -> tuple[str, str]:
        """Return where a file is for a page of the site, and the anchor there; nothing where the file is not shown."""
        if file in self._pages and self._language == "zh":
            anchor = _translate(anchor, ROOT / file, ROOT / self._original(file))
        english = self._english.get(file)
        place = self._pages.get(file) or (english if english in self._pages.values() else None)
        if self._language == "zh" and english == place == here:
            place = None  # the page itself in English
        if place is not None:
            return ("" if place == here else relpath(place, PurePosixPath(here).parent)), anchor
        other = english or self._chinese.get(file)
        if other is not None:
            there = f"../../{'en' if english else 'zh'}/{self._release}/{_url(other)}"
            return f"{relpath(there, _url(here) or '.')}/", anchor
        return (f"{FILES}/{file}" if FILES else ""), anchor if FILES else ""

    def _original(self, path: str) -> str:
        """The English page that a Chinese one says again."""
        return "README.md" if path == "README.zh-CN.md" else path.replace("docs/zh/", "docs/", 1)


def write_configuration(work: Path, language: str, pages: dict[str, str], release: str) -> None:
    """Write what the builder reads for a language: mkdocs.yml, with its pages and words."""
    configuration: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    chinese = configuration["extra"].pop("chinese")
    translated = {*find_pages("zh").values()}
    if language == "zh":
        configuration["theme"]["language"] = "zh"
        del configuration["plugins"]["mkdocstrings"]
        for scheme in configuration["theme"]["palette"]:
            scheme["toggle"]["name"] = chinese[scheme["toggle"]["name"]]
        sections = {chinese[name]: inside for each in configuration["nav"] for name, inside in each.items()}
        there = {name: [page for page in inside if page in translated] for name, inside in sections.items()}
        configuration["nav"] = [{name: inside} for name, inside in there.items() if inside]
    else:
        configuration["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "src")]
    configuration["docs_dir"], configuration["site_dir"] = language, f"site/{language}"
    configuration["theme"]["custom_dir"] = str(Path(__file__).with_name("theme"))
    configuration["extra_css"] = ["extra.css"]
    configuration["extra"] |= {
        "alternate": [
            {"lang": each, "name": name, "link": f"../../{each}/{release}/"} for each, name in LANGUAGES.items()
        ],
        "translated": sorted(f"{_url(place)}/".lstrip("/") for place in translated),
    }
    (work / f"{language}.yml").write_text(yaml.safe_dump(configuration, allow_unicode=True, sort_keys=False), "utf-8")


def add_release(folder: Path, built: Path, release: str) -> None:
    """Put a release among the others, as the newest one, and list them all for the menu of versions."""
    for name in (release, LATEST):
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(built, folder / name)
    releases = [each.name for each in folder.iterdir() if each.is_dir() and each.name != LATEST]
    newest_first = sorted(releases, key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    listed = [{"version": each, "title": each, "aliases": [LATEST] if each == release else []} for each in newest_first]
    (folder / "versions.json").write_text(json.dumps(listed), "utf-8")


def _list(pattern: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))


def _url(place: str) -> str:
    """The address of a page on the site: `guide/sql` of `guide/sql.md`, nothing for the first page."""
    return place.removesuffix(".md").removesuffix("index").rstrip("/")


def _anchors(page: Path) -> dict[str, str]:
    """The anchors of a page's headings by those that the repository gives them, in the order of the page."""
    headings = [heading for _, heading in _HEADING.findall(_FENCE.sub("", page.read_text("utf-8")))]
    plain = [_LINK.sub(r"\1", heading).replace("`", "") for heading in headings]
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-"): _slug(each, "-") for each in plain}


def _translate(anchor: str, page: Path, original: Path) -> str:
    """The English anchor of a Chinese heading."""
    return dict(zip(_anchors(page), _anchors(original).values(), strict=True)).get(anchor, anchor)


def _list_decisions() -> str:
    lines = ["# Decisions\n", "Why Longthread is as it is: one page for each decision.\n"]
    for path in _list("docs/decisions/*.md"):
        heading = _HEADING.search((ROOT / path).read_text("utf-8"))
        assert heading is not None
        lines.append(f"- [{heading[2]}]({Path(path).name})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
