"""What a source was taught: the business terms and examples that a model gets with the questions that need them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from longthread.errors import CatalogInvalid, DefinitionAmbiguous, DefinitionNotFound, SettingsNotAllowed
from longthread.model.catalog import Definition
from longthread.server.catalog_answers import SourceTerms
from longthread.server.fields import Name, PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.state import DEMO, OWNER_ONLY, Caller, CallerRights, Rights, Served, ServedDep
from longthread.tools.catalog.definitions import Catalog
from longthread.tools.catalog.fields import LONGEST_NAME
from longthread.tools.catalog.teach import LONGEST_MEANING, LONGEST_SQL, MOST

router = APIRouter(prefix="/api/sources", tags=["sources"], dependencies=[OWNER_ONLY])

_NAMED = (DefinitionAmbiguous, DefinitionNotFound, SettingsNotAllowed)
_Question = Annotated[Name, Field(max_length=LONGEST_MEANING)]
_Sql = Annotated[Name, Field(max_length=LONGEST_SQL)]
_TermName = Annotated[Name, Field(max_length=LONGEST_NAME)]


class TermBody(BaseModel):
    """A word of the business: what it means, in words, in SQL or in both. SQL may be a part of a statement."""

    model_config = ConfigDict(extra="forbid")

    name: _TermName
    meaning: Annotated[Name, Field(max_length=LONGEST_MEANING)] | None = None
    sql: _Sql | None = None
    synonyms: Annotated[list[_TermName], Field(max_length=LONGEST_NAME)] = Field(default_factory=list)


class ExampleBody(BaseModel):
    """A question, and the query that answers it."""

    model_config = ConfigDict(extra="forbid")

    question: _Question
    sql: _Sql


class TermsBody(BaseModel):
    """Terms and examples to add, in the place of those of the same name and question, and the names and questions of
    those to remove."""

    model_config = ConfigDict(extra="forbid")

    description: Annotated[PlainText, Field(max_length=LONGEST_MEANING)] | None = None
    terms: Annotated[list[TermBody], Field(max_length=MOST)] = Field(default_factory=list)
    examples: Annotated[list[ExampleBody], Field(max_length=MOST)] = Field(default_factory=list)
    remove_terms: Annotated[list[_TermName], Field(max_length=MOST)] = Field(default_factory=list)
    remove_examples: Annotated[list[_Question], Field(max_length=MOST)] = Field(default_factory=list)


@router.get("/{name}/terms", responses=problems(*_NAMED, reads=True))
async def show_terms(served: ServedDep, rights: Rights, name: PathSegment) -> SourceTerms:
    """What a source was taught; nothing, with version 0, where nobody has taught it yet."""
    spec = await _spec_of(served, rights, name)
    try:
        found = await Catalog(served.analyst.store).taught_source(spec)
    except DefinitionNotFound:  # the demo or the configured source, of which the catalog knows nothing
        found = Definition("source", "", name, {}, version=0)
    return _describe_terms(served, name, found)


@router.patch("/{name}/terms", responses=problems(CatalogInvalid, *_NAMED, body=True))
async def change_terms(
    served: ServedDep, user: Caller, rights: Rights, name: PathSegment, body: TermsBody
) -> SourceTerms:
    """Teach a source terms and examples, or take some away, as one new version of it. All is changed or nothing. The
    next question has them."""
    given: dict[str, Any] = body.model_dump(include={"terms", "examples"}, exclude_none=True)
    if body.description is not None:
        given["description"] = body.description or None
    gone = {"terms": body.remove_terms, "examples": body.remove_examples}
    spec = await _spec_of(served, rights, name)
    change = await Catalog(served.analyst.store, user=user).teach(spec, given, gone)
    return _describe_terms(served, name, change.definition)


async def _spec_of(served: Served, rights: CallerRights, name: str) -> str:
    """What the catalog finds a source by. No address of a caller's choice becomes a source here, unopened."""
    if name in {DEMO, rights.own_source}:
        return rights.source(name) or name
    return (await Catalog(served.analyst.store).source(name)).id


def _describe_terms(served: Served, name: str, found: Definition) -> SourceTerms:
    body = found.body
    metrics = (body.get("semantics") or {}).get("metrics") or []
    return {
        "source": name,
        "version": found.version,
        "description": body.get("description"),
        "terms": [
            {
                "name": each["name"],
                "meaning": each.get("meaning"),
                "sql": each.get("sql"),
                "synonyms": list(each.get("synonyms") or ()),
            }
            for each in body.get("terms") or ()
        ],
        "examples": [{"question": each["question"], "sql": each["sql"]} for each in body.get("examples") or ()],
        "metrics": [each["name"] for each in metrics],
        "changeable": not served.analyst.settings.read_only,
    }
