"""Agents, skills, tools and sources as data: look them up, apply definitions, delete."""

from __future__ import annotations

from longthread.model.catalog import (
    Agent,
    Definition,
    Kind,
    Skill,
    SkillTool,
    SourceDefinition,
    ToolDefinition,
    Version,
)
from longthread.tools.catalog.catalog import Catalog, Deletion
from longthread.tools.catalog.changes import Change, FieldChange
from longthread.tools.catalog.documents import Document, read_paths, read_text

__all__ = [
    "Agent",
    "Catalog",
    "Change",
    "Definition",
    "Deletion",
    "Document",
    "FieldChange",
    "Kind",
    "Skill",
    "SkillTool",
    "SourceDefinition",
    "ToolDefinition",
    "Version",
    "read_paths",
    "read_text",
]
