"""The files of Anthropic's memory tool in a vault, without a package: the six commands and their answers."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..generated.vault import Vault
from .core import Fields, delete_rows, list_rows
from .long_texts import LongText, put_texts, to_texts

ROOT = "/memories"
#: Metadata holds no longer text.
PATH_CHARACTERS_MAX = 256
LINES_MAX = 999_999
#: Metadata of all files, since a filter cannot ask for the beginning of a path.
TREE = {"file_tree": "memories"}
PREFIX = "file_"
TEXTS = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class CommandFault(Exception):
    """What is wrong with a command: its text is the answer to the model."""


class MemoryFiles:
    """Files below `/memories` as memories of the core with their path as metadata (`file_path`).

    Searches and blocks find what they say. Directories are what the paths of files say: one without
    a file does not exist, but `/memories`. Of two writers of a file the last one counts.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._lock = threading.Lock()

    def run(self, command: Mapping[str, Any]) -> str:
        """The answer to the input of a `memory` tool call, in the words of the tool's documentation.

        Faults of the model are answered, too; what the service refuses is raised as `VaultError`.
        """
        try:
            return self.execute(command)
        except CommandFault as fault:
            return str(fault)

    def execute(self, command: Mapping[str, Any]) -> str:
        """The same, but a fault of the model is raised as `CommandFault`: its result is to have `is_error`."""
        name = command.get("command", "")
        if name not in TEXTS:
            raise CommandFault(f"Error: {name} is no command of the memory tool")
        for field in TEXTS[name]:
            if not isinstance(command.get(field), str):
                raise CommandFault(f"Error: {name} needs the text `{field}`")
        # One at a time: two edits of a file that come together are both to stay.
        with self._lock:
            answer: str = getattr(self, "_" + name)(command)
        return answer

    def clear(self) -> None:
        """Removes all files."""
        delete_rows(self._vault, list_rows(self._vault, TREE))

    def _read(self, path: Optional[str] = None) -> Tuple[Dict[str, LongText], List[Fields]]:
        rows = list_rows(self._vault, TREE if path is None else {**TREE, "file_path": path})
        found = to_texts(PREFIX, rows)
        files = [replace(text, text=json.loads(text.data)) if text.data else text for text in found]
        return {str(file.metadata["file_path"]): file for file in files}, rows

    def _open(self, given: str) -> Tuple[str, LongText, List[Fields]]:
        path = read_path(given)
        files, rows = self._read(path)
        if path not in files:
            raise CommandFault(f"Error: The path {given} does not exist. Please provide a valid path.")
        return path, files[path], rows

    def _write(
        self, files: Sequence[Tuple[str, str, Optional[LongText]]], before: Sequence[Fields] = ()
    ) -> None:
        """Stores files in one upload, and then removes what was there: one that breaks off loses nothing."""
        texts = []
        for path, text, known in files:
            times = (known.created_at, known.updated_at) if known else (0, 0)
            texts.append(LongText({**TREE, "file_path": path}, text, *times))
        try:
            put_texts(self._vault, PREFIX, texts, before)
        except ValueError as error:
            raise CommandFault(f"Error: {error}") from error

    def _view(self, command: Mapping[str, Any]) -> str:
        given = command["path"]
        path = read_path(given)
        files, _ = self._read()
        if path in files:
            return _show(given, files[path].text, command.get("view_range"))
        if path != ROOT and not any(_is_below(one, path) for one in files):
            raise CommandFault(f"The path {given} does not exist. Please provide a valid path.")
        return _list(path, {one: len(text.text.encode()) for one, text in files.items()})

    def _create(self, command: Mapping[str, Any]) -> str:
        given = command["path"]
        path = read_path(given)
        files, _ = self._read()
        if path == ROOT or any(one == path or _is_below(one, path) for one in files):
            raise CommandFault(f"Error: File {given} already exists")
        _refuse_below_file(path, files)
        self._write([(path, command["file_text"], None)])
        return f"File created successfully at: {given}"

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        given, old, new = command["path"], command["old_str"], command.get("new_str") or ""
        path, file, rows = self._open(given)
        places = _find_all(file.text, old)
        lines = [file.text.count("\n", 0, place) + 1 for place in places]
        if not places:
            raise CommandFault(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {given}."
            )
        if len(places) > 1:
            numbers = ", ".join(str(line) for line in dict.fromkeys(lines))
            raise CommandFault(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{numbers}. Please ensure it is unique"
            )
        text = file.text[: places[0]] + new + file.text[places[0] + len(old) :]
        self._write([(path, text, file)], rows)
        start = max(1, lines[0] - 2)
        shown = text.split("\n")[start - 1 : lines[0] + new.count("\n") + 2]
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            + _number(shown, start)
        )

    def _insert(self, command: Mapping[str, Any]) -> str:
        path, file, rows = self._open(command["path"])
        lines, at = file.text.split("\n"), command.get("insert_line")
        if not isinstance(at, int) or not 0 <= at <= len(lines):
            raise CommandFault(
                f"Error: Invalid `insert_line` parameter: {at}. It should be within the range of "
                f"lines of the file: [0, {len(lines)}]"
            )
        text = command["insert_text"]
        lines.insert(at, text[:-1] if text.endswith("\n") else text)
        self._write([(path, "\n".join(lines), file)], rows)
        return f"The file {command['path']} has been edited."

    def _delete(self, command: Mapping[str, Any]) -> str:
        path = read_path(command["path"])
        if path == ROOT:
            raise CommandFault("Error: Cannot delete the /memories directory itself")
        rows = [row for row in self._read()[1] if _is_at(row, path)]
        if not rows:
            raise CommandFault(f"Error: The path {command['path']} does not exist")
        delete_rows(self._vault, rows)
        return f"Successfully deleted {command['path']}"

    def _rename(self, command: Mapping[str, Any]) -> str:
        old, new = read_path(command["old_path"]), read_path(command["new_path"])
        if old == ROOT:
            raise CommandFault("Error: Cannot rename the /memories directory itself")
        files, rows = self._read()
        moved = [one for one in files if one == old or _is_below(one, old)]
        if not moved:
            raise CommandFault(f"Error: The path {command['old_path']} does not exist")
        if new == ROOT or any(one == new or _is_below(one, new) for one in files):
            raise CommandFault(f"Error: The destination {command['new_path']} already exists")
        _refuse_below_file(new, files)
        if _is_below(new, old):
            raise CommandFault(f"Error: The destination {command['new_path']} is in {command['old_path']}")
        self._write(
            [(new + one[len(old) :], files[one].text, files[one]) for one in moved],
            [row for row in rows if _is_at(row, old)],
        )
        return f"Successfully renamed {command['old_path']} to {command['new_path']}"


def read_path(path: str) -> str:
    """A path below `/memories` as it is stored: without empty segments and an end of `/`."""
    segments = [segment for segment in path.split("/") if segment]
    if not path.startswith("/") or segments[:1] != [ROOT[1:]]:
        raise CommandFault(f"Error: Path must start with {ROOT}, got: {path}")
    if any(segment in (".", "..") for segment in re.split(r"[/\\]", _unescape(_unescape(path)))):
        raise CommandFault(f"Error: Path {path} would escape {ROOT} directory")
    if re.search(r"[\x00-\x1f\x7f]", path):
        raise CommandFault("Error: A path has no control characters")
    plain = "/" + "/".join(segments)
    if len(plain) > PATH_CHARACTERS_MAX:
        raise CommandFault(f"Error: Path {path} is longer than {PATH_CHARACTERS_MAX} characters")
    return plain


def _unescape(path: str) -> str:
    return re.sub(r"%(2e|2f|5c|25)", lambda match: chr(int(match[1], 16)), path, flags=re.IGNORECASE)


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory + "/")


def _is_at(row: Fields, path: str) -> bool:
    own = str(row["metadata"]["file_path"])
    return own == path or _is_below(own, path)


def _refuse_below_file(path: str, files: Mapping[str, Any]) -> None:
    for one in files:
        if _is_below(path, one):
            raise CommandFault(f"Error: The path {one} is not a directory")


def _show(path: str, text: str, view_range: Optional[Sequence[int]]) -> str:
    lines = text.split("\n")
    if len(lines) > LINES_MAX:
        raise CommandFault(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
    start = max(1, first)
    shown = lines[start - 1 : None if last == -1 else max(0, last)]
    return f"Here's the content of {path} with line numbers:\n{_number(shown, start)}"


def _number(lines: Sequence[str], start: int) -> str:
    return "\n".join(f"{start + at:>6}\t{line}" for at, line in enumerate(lines))


def _list(directory: str, files: Mapping[str, int]) -> str:
    """The lines of a directory two levels deep, as the documentation of the tool has them."""
    sizes: Dict[str, int] = {directory: 0}
    for path in sorted(one for one in files if _is_below(one, directory)):
        sizes[directory] += files[path]
        segments = path[len(directory) + 1 :].split("/")
        if any(segment.startswith(".") or segment == "node_modules" for segment in segments):
            continue
        for depth in range(1, min(2, len(segments)) + 1):
            end = "" if depth == len(segments) else "/"
            item = f"{directory}/{'/'.join(segments[:depth])}{end}"
            sizes[item] = sizes.get(item, 0) + files[path]
    head = (
        f"Here're the files and directories up to 2 levels deep in {directory}, "
        "excluding hidden items and node_modules:"
    )
    return "\n".join([head, *(f"{_size(size)}\t{path}" for path, size in sizes.items())])


def _size(length: float) -> str:
    unit = 0
    while length >= 1024 and unit < 3:
        length, unit = length / 1024, unit + 1
    return f"{length:.0f}{'BKMG'[unit]}" if length == int(length) else f"{length:.1f}{'BKMG'[unit]}"


def _find_all(text: str, wanted: str) -> List[int]:
    """Where a text stands in another; nowhere for an empty one."""
    places: List[int] = []
    at = text.find(wanted) if wanted else -1
    while at != -1:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places
