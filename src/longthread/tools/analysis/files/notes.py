"""Notes on how a file was read: texts for models and logs, with the parts for texts in other languages."""

from __future__ import annotations

from typing import Any

NoteValue = str | int
PackedNote = list[Any]


class Note(str):
    """An English text, with the `code` of what it says and the `values` in it. Of a column it begins with its name,
    which `bare` lacks."""

    code: str
    values: dict[str, NoteValue]
    column: str | None
    bare: str

    def __new__(cls, text: str, code: str = "", /, **values: NoteValue) -> Note:
        note = super().__new__(cls, text)
        note.code, note.values, note.column, note.bare = code, values, None, text
        return note

    def of_column(self, column: str) -> Note:
        """Return the note as one on a column."""
        note = Note(f'Column "{column}": {self}.', self.code, **self.values)
        note.column, note.bare = column, str(self)
        return note

    def of_file(self, name: str) -> Note:
        """Return the note with a file's name before it, which `values` has as `file`."""
        note = Note(f"{name}: {self}", self.code, **self.values)
        note.bare = str(self)
        return note


def pack(note: str) -> PackedNote:
    """Return a note as JSON."""
    if not isinstance(note, Note):
        return [note]
    return [str(note), note.code, note.values, note.column, note.bare]


def unpack(packed: PackedNote) -> Note:
    """Return the note that was packed."""
    if len(packed) == 1:
        return Note(packed[0])
    text, code, values, column, bare = packed
    note = Note(text, code, **values)
    note.column, note.bare = column, bare
    return note
