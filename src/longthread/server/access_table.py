"""Who may use each route: one row a route, which the server enforces and the tests walk.

A route without a row cannot be served: `protect` refuses it when the application is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import unquote

from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from longthread.access.audit import acting, acting_for, note_alone
from longthread.access.principal import KeyScope, Principal, UserRole
from longthread.errors import AccountMissing
from longthread.server import page
from longthread.server.authentication import PRINCIPAL, Authentication, StreamWatch
from longthread.server.requests import route_of

Who = Literal["anyone", "visitor", "reader", "user", "monitor"]
"""`anyone`: it says nothing of anybody. `visitor`: the route itself sees whether a caller is known. `reader`: who has a
share link, as the settings say. `user`: who is logged in, or has a key with the scope. `monitor`: who may read
metrics."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may use a route. `scope` is what an API key needs; None: no key may, only a login. `role` is the least role
    of a user. `of_account`: it is about an account, which a server without login has none of."""

    who: Who
    scope: KeyScope | None = None
    role: UserRole = "member"
    of_account: bool = False


_ANYONE, _VISITOR, _READER = Rule("anyone"), Rule("visitor", "read"), Rule("reader", "read")
_READ, _CHAT, _MEMORIES = Rule("user", "read"), Rule("user", "chat"), Rule("user", "memories")
_SOURCES, _CATALOG = Rule("user", "sources"), Rule("user", "catalog")
_OWN, _ADMIN = Rule("user"), Rule("user", "admin", "admin")
_ACCOUNT_OWN = Rule("user", of_account=True)

_HEALTH: Mapping[str, Rule] = {
    "GET /health": _ANYONE,
    "GET /health/stream": _ANYONE,
    "GET /ready": _ANYONE,
    "GET /metrics": Rule("monitor", "admin", "admin"),
    "GET /api/info": _VISITOR,
    "GET /api/openapi.json": _READ,
}
_ACCOUNT: Mapping[str, Rule] = {
    "POST /api/login": _ANYONE,
    "POST /api/logout": _ANYONE,
    "POST /api/links": _ANYONE,
    "POST /api/links/look": _ANYONE,
    "GET /api/oidc/{issuer}/start": _ANYONE,
    "GET /api/oidc/{issuer}/callback": _ANYONE,
    "GET /api/oidc/{issuer}/logout": _ANYONE,
    "GET /api/me": _READ,
    "PATCH /api/me": _ACCOUNT_OWN,
    "DELETE /api/me": _ACCOUNT_OWN,
    "GET /api/me/export": _ACCOUNT_OWN,
    "PUT /api/me/password": _ACCOUNT_OWN,
    "GET /api/me/sessions": _ACCOUNT_OWN,
    "DELETE /api/me/sessions": _ACCOUNT_OWN,
    "DELETE /api/me/sessions/{session_id}": _ACCOUNT_OWN,
    "GET /api/me/keys": _ACCOUNT_OWN,
    "POST /api/me/keys": _ACCOUNT_OWN,
    "DELETE /api/me/keys/{key_id}": _ACCOUNT_OWN,
    "GET /api/me/usage": _READ,
}
_ADMINISTRATION: Mapping[str, Rule] = {
    "GET /api/admin/keys": _ADMIN,
    "DELETE /api/admin/keys/{key_id}": _ADMIN,
    "GET /api/admin/usage": _ADMIN,
    "GET /api/admin/users": _ADMIN,
    "POST /api/admin/users": _ADMIN,
    "PATCH /api/admin/users/{user_id}": _ADMIN,
    "DELETE /api/admin/users/{user_id}": _ADMIN,
    "POST /api/admin/users/{user_id}/link": _ADMIN,
    "POST /api/admin/users/{user_id}/logout": _ADMIN,
    "GET /api/admin/groups": _ADMIN,
    "POST /api/admin/groups": _ADMIN,
    "DELETE /api/admin/groups/{group_id}": _ADMIN,
    "GET /api/admin/groups/{group_id}/members": _ADMIN,
    "PUT /api/admin/groups/{group_id}/members/{user_id}": _ADMIN,
    "DELETE /api/admin/groups/{group_id}/members/{user_id}": _ADMIN,
    "GET /api/admin/audit": _ADMIN,
    "GET /api/admin/audit/export": _ADMIN,
    "GET /api/admin/grants": _ADMIN,
    "PUT /api/admin/grants": _ADMIN,
    "DELETE /api/admin/grants": _ADMIN,
}
_CONVERSATIONS: Mapping[str, Rule] = {
    "GET /api/conversations": _READ,
    "POST /api/conversations": _CHAT,
    "PATCH /api/conversations/{thread_id}": _CHAT,
    "DELETE /api/conversations/{thread_id}": _CHAT,
    "POST /api/conversations/{thread_id}/restore": _CHAT,
    "POST /api/conversations/{thread_id}/stop": _CHAT,
    "POST /api/conversations/{thread_id}/resume": _CHAT,
    "GET /api/conversations/{thread_id}/export": _READ,
    "POST /api/conversations/{thread_id}/messages": _CHAT,
    "PATCH /api/conversations/{thread_id}/messages/{message_id}": _CHAT,
    "POST /api/conversations/{thread_id}/messages/{message_id}/edit": _CHAT,
    "POST /api/conversations/{thread_id}/messages/{message_id}/again": _CHAT,
    "PUT /api/conversations/{thread_id}/messages/{message_id}/feedback": _CHAT,
    "DELETE /api/conversations/{thread_id}/messages/{message_id}/feedback": _CHAT,
    "PUT /api/conversations/{thread_id}/branch": _CHAT,
    "GET /api/conversations/{thread_id}/runs/{run_id}/events": _READ,
    "GET /api/conversations/{thread_id}/calls": _READ,
    "GET /api/conversations/{thread_id}/calls/{index}": _READ,
    "GET /api/conversations/{thread_id}/steps/{index}": _READ,
    "GET /api/conversations/{thread_id}/steps/{index}/chart": _READ,
    "GET /api/conversations/{thread_id}/steps/{index}/result": _READ,
    "GET /api/conversations/{thread_id}/steps/{index}/result/file": _READ,
    "POST /api/conversations/{thread_id}/steps/{index}/try": _CHAT,
    "POST /api/conversations/{thread_id}/steps/{index}/edit": _CHAT,
    "GET /api/conversations/{thread_id}/queue": _READ,
    "GET /api/conversations/{thread_id}/queue/{question_id}": _READ,
    "DELETE /api/conversations/{thread_id}/queue/{question_id}": _CHAT,
    "GET /api/conversations/{thread_id}/queue/{question_id}/events": _READ,
    "GET /api/conversations/{thread_id}/approvals": _READ,
    "POST /api/conversations/{thread_id}/approvals": _CHAT,
    "GET /api/threads/{thread_id}/queue": _READ,
    "GET /api/threads/{thread_id}/queue/{question_id}": _READ,
    "DELETE /api/threads/{thread_id}/queue/{question_id}": _CHAT,
    "GET /api/threads/{thread_id}/approvals": _READ,
    "POST /api/threads/{thread_id}/approvals": _CHAT,
    "GET /api/conversations/{thread_id}/usage": _READ,
    "GET /api/conversations/{thread_id}/memory": _READ,
    "GET /api/conversations/{thread_id}/shares": _READ,
    "POST /api/conversations/{thread_id}/shares": _CHAT,
    "DELETE /api/conversations/{thread_id}/shares/{share_id}": _CHAT,
    "GET /api/shared/{token}": _READER,
    "GET /api/tags": _READ,
    "GET /api/chat/history": _READ,
    "GET /api/state": _READ,
    "GET /api/feedback": _READ,
    "GET /api/feedback/export": _READ,
    "GET /api/events": _READ,
    "POST /api/chat": _CHAT,
    "POST /ag-ui/{agent}": _CHAT,
    "GET /api/agents": _READ,
}
_PROJECTS: Mapping[str, Rule] = {
    "GET /api/projects": _READ,
    "POST /api/projects": _OWN,
    "GET /api/projects/{project_id}": _READ,
    "PATCH /api/projects/{project_id}": _OWN,
    "DELETE /api/projects/{project_id}": _OWN,
    "PUT /api/projects/{project_id}/members/{user_id}": _OWN,
    "DELETE /api/projects/{project_id}/members/{user_id}": _OWN,
    "POST /api/conversations/{thread_id}/project": _CHAT,
}
_MEMORY: Mapping[str, Rule] = {
    "GET /api/recall": _READ,
    "GET /api/memories": _MEMORIES,
    "POST /api/memories": _MEMORIES,
    "GET /api/memories/{memory_id}": _MEMORIES,
    "PATCH /api/memories/{memory_id}": _MEMORIES,
    "DELETE /api/memories/{memory_id}": _MEMORIES,
}
_BOARDS: Mapping[str, Rule] = {
    "GET /api/boards": _READ,
    "POST /api/boards": _CHAT,
    "GET /api/boards/{board_id}": _READ,
    "PATCH /api/boards/{board_id}": _CHAT,
    "DELETE /api/boards/{board_id}": _CHAT,
    "POST /api/boards/{board_id}/cards": _CHAT,
    "POST /api/boards/{board_id}/cards/{card_id}/refresh": _CHAT,
    "PATCH /api/boards/{board_id}/cards/{card_id}": _CHAT,
    "DELETE /api/boards/{board_id}/cards/{card_id}": _CHAT,
    "GET /api/boards/{board_id}/cards/{card_id}/file": _READ,
    "POST /api/boards/{board_id}/shares": _CHAT,
    "GET /api/boards/{board_id}/shares": _READ,
    "DELETE /api/boards/{board_id}/shares/{share_id}": _CHAT,
    "GET /api/shared/boards/{token}": _READER,
}
_DEFINITIONS: Mapping[str, Rule] = {
    "GET /api/models": _READ,
    "PUT /api/models/keys/{provider}": _OWN,
    "POST /api/models/keys/{provider}/check": _OWN,
    "DELETE /api/models/keys/{provider}": _OWN,
    "POST /api/models/check": _CATALOG,
    "POST /api/uploads": _SOURCES,
    "DELETE /api/uploads/{upload_id}": _SOURCES,
    "GET /api/sources": _READ,
    "POST /api/sources": _SOURCES,
    "POST /api/sources/{name}/files": _SOURCES,
    "GET /api/sources/{name}/preview": _READ,
    "DELETE /api/sources/{name}": _SOURCES,
    "GET /api/sources/{name}/terms": _READ,
    "PATCH /api/sources/{name}/terms": _SOURCES,
    "GET /api/catalog/{kind}": _CATALOG,
    "GET /api/catalog/{kind}/{name}": _CATALOG,
    "GET /api/catalog/{kind}/{name}/versions": _CATALOG,
    "PUT /api/catalog/{kind}/{name}": _CATALOG,
    "PATCH /api/catalog/{kind}/{name}": _CATALOG,
    "DELETE /api/catalog/{kind}/{name}": _CATALOG,
    "POST /api/catalog/tools/{name}/run": _CATALOG,
}
_PAGE: Mapping[str, Rule] = {f"GET {path}": _ANYONE for path in (*page.ROUTES, *page.TOP)}
ACCESS: Mapping[str, Rule] = {
    **_HEALTH,
    **_ACCOUNT,
    **_ADMINISTRATION,
    **_CONVERSATIONS,
    **_PROJECTS,
    **_MEMORY,
    **_BOARDS,
    **_DEFINITIONS,
    **_PAGE,
}
"""By method and path, as the code writes them."""


def rule_of(method: str, path: str) -> Rule:
    """Raises KeyError: the route has no row."""
    return ACCESS[f"{'GET' if method == 'HEAD' else method} {path}"]


def protect(routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return routes that check who calls them. Raises KeyError: a route has no row."""
    return [_protect_route(route) for route in routes]


def _protect_route(route: BaseRoute) -> BaseRoute:
    if isinstance(route, Mount):
        if route.path not in _MOUNTED:
            raise KeyError(f"{route.path} has no row in {__name__}")
        return route
    assert isinstance(route, Route), f"{route} is of a kind that has no rule"
    rules = {method: rule_of(method, route.path) for method in route.methods or ()}
    if all(rule.who == "anyone" for rule in rules.values()) and not route.path.startswith("/api/"):
        return route
    guarded = copy(route)  # applications share their routes
    guarded.app = GuardedRoute(route.app, route.path, rules)
    return guarded


_MOUNTED: Mapping[str, str] = {
    "/assets": "files of the page, which say nothing of anybody",
    "/v1": "the gateway, which checks itself, in the caller's dialect",
}


class GuardedRoute:
    """A route's application. It finds out who calls, checks the route's rule, and ends streams of callers who may no
    longer read them."""

    def __init__(self, app: ASGIApp, path: str, rules: Mapping[str, Rule]) -> None:
        self._app = app
        self._rules = rules
        self._may_be_read = f"GET {path}" in _CONVERSATIONS and rules.keys() <= {"GET", "HEAD"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        authentication: Authentication = scope["app"].state.served.authentication
        principal = await self._admit(authentication, self._rules[scope["method"]], scope)
        cast(dict[str, Any], scope)[PRINCIPAL] = principal
        with acting(authentication.acting(scope, principal)):
            if principal is None or principal.via == "local":
                await self._app(scope, receive, send)
                return
            read = await authentication.find_read_user(scope, principal) if self._may_be_read else None
            with acting_for(read.user if read is not None else None):
                if read is not None:
                    cast(dict[str, Any], scope)[PRINCIPAL] = read
                    await _note_reading(scope)
                watch = StreamWatch(lambda: authentication.find_principal(scope), principal)
                await watch.run(self._app, scope, receive, send)

    async def _admit(self, authentication: Authentication, rule: Rule, scope: Scope) -> Principal | None:
        if rule.who == "anyone" or (rule.who == "reader" and authentication.shares_with_anyone):
            return None
        if rule.who == "monitor" and authentication.is_monitor(scope):
            return None
        if rule.who == "visitor":
            visitor = await authentication.find_principal(scope)
            if visitor is None:
                return None
            authentication.count_request(visitor)
            return visitor if rule.scope is None or visitor.has_scope(rule.scope) else None
        principal = await authentication.expect_principal(scope)
        if rule.of_account and principal.via == "local":
            raise AccountMissing  # also where the store has users, and its server was started without a login
        authentication.count_request(principal)
        if not principal.is_local:
            principal.expect_scope(rule.scope)
            principal.expect_role(rule.role)
        return principal


async def _note_reading(scope: Scope) -> None:
    """Note that an administrator reads what is a user's, before anything is read."""
    given = scope["path_params"].get("thread_id")
    # Of several in the query, the route reads the last, and so does this.
    thread_id = unquote(given) if given is not None else QueryParams(scope["query_string"]).get("thread_id", "")
    await note_alone(scope["app"].state.served.analyst.store, "admin.read", thread_id, route=route_of(scope))
