"""Errors of users, logins, keys and rights."""

from __future__ import annotations

from longthread.errors.base import InvalidInput, LongthreadError

__all__ = [
    "AccessEnded",
    "AccountDisabled",
    "AccountMissing",
    "AccountPending",
    "ApiKeyNotFound",
    "BudgetSpent",
    "DomainRefused",
    "GrantNotFound",
    "GroupNotFound",
    "IssuerAnswerRefused",
    "IssuerNotFound",
    "IssuerUnreachable",
    "LastAdmin",
    "LastManager",
    "LinkUnusable",
    "LoginDenied",
    "LoginExpired",
    "LoginFailed",
    "LoginNeeded",
    "LoginThrottled",
    "ManagerNeeded",
    "NameInUse",
    "NotGranted",
    "NotLocal",
    "PasswordRefused",
    "PriceMissing",
    "ProjectNotEmpty",
    "ProjectNotFound",
    "ProxyRefused",
    "RoleMissing",
    "ScopeMissing",
    "SeveralKeys",
    "SignupRefused",
    "TooManyRequests",
    "UserNotFound",
]


class NotLocal(LongthreadError, exit_code=2):
    message = """This server has no login, and answers only programs of its own machine that come straight to it. To let
    others in, its operator sets LONGTHREAD_AUTH to login or proxy."""


class AccountMissing(LongthreadError, exit_code=2):
    message = """This server has no login, so you have no account here. Accounts, keys and logins are of servers with
    LONGTHREAD_AUTH set to login or proxy."""


class LoginNeeded(LongthreadError, exit_code=2):
    message = "You are not logged in, or your login has ended. Log in, or send an API key as `Authorization: Bearer`."


class LoginFailed(LongthreadError, exit_code=2):
    message = "The name or the password is wrong."


class LoginThrottled(LongthreadError, exit_code=2):
    message = "There were too many wrong passwords. Try again in {seconds} seconds."
    seconds: int


class LinkUnusable(LongthreadError, exit_code=2):
    message = "This link was used, or has expired. Ask an administrator for a new one."


class PasswordRefused(InvalidInput):
    message = "This password cannot be used: {reason} Choose another one."


class UserNotFound(LongthreadError, exit_code=3):
    message = "There is no user {name}. `longthread users list` shows them."
    name: str


class GroupNotFound(LongthreadError, exit_code=3):
    message = "There is no group {name}. `longthread groups list` shows them."
    name: str


class ApiKeyNotFound(LongthreadError, exit_code=3):
    message = "There is no API key {key}. `longthread keys list` shows them."
    key: str


class SeveralKeys(InvalidInput):
    message = "This request carries two API keys of Longthread. Send one."


class NameInUse(LongthreadError, exit_code=2):
    message = "The name {name} is taken. Choose another one."
    name: str


class LastAdmin(LongthreadError, exit_code=2):
    message = "{name} is the last active administrator. Make another user an administrator first."
    name: str


class RoleMissing(LongthreadError, exit_code=2):
    message = "Only {needed} may do this. Ask an administrator."
    needed: str


class ScopeMissing(LongthreadError, exit_code=2):
    message = "This API key has no scope {scope}. Make one that has it."
    scope: str


class AccessEnded(LongthreadError, exit_code=2):
    message = """The user who asked may not use this server any more, or the API key was revoked or has expired.
    Nothing is lost: log in, and ask it to continue."""


class GrantNotFound(LongthreadError, exit_code=3):
    message = "There is no such grant. `longthread grants list` shows them."


class NotGranted(LongthreadError, exit_code=2):
    message = "You have no right to {use} the {kind} {name}. Ask an administrator to grant it."
    use: str
    kind: str
    name: str


class ProjectNotFound(LongthreadError, exit_code=3):
    message = "There is no project {project}. `longthread projects list` shows them."
    project: str


class ProjectNotEmpty(LongthreadError, exit_code=2):
    message = "The project {project} has {count} conversations. Say that they are to be deleted, too, or move them out."
    project: str
    count: int


class ManagerNeeded(LongthreadError, exit_code=2):
    message = "Only who manages the project {project} may do this. Ask a manager of it."
    project: str


class LastManager(LongthreadError, exit_code=2):
    message = "The project {project} would have no manager. Let another member manage it first, or delete it."
    project: str


class TooManyRequests(LongthreadError, exit_code=2):
    message = "This API key may send {limit}. Try again in {seconds} seconds."
    limit: str
    seconds: int


class BudgetSpent(LongthreadError, exit_code=2):
    message = (
        "The budget of {whose} for this {period} is spent: {spent} of {budget} {unit}. It begins again at {until}."
    )
    whose: str
    period: str
    spent: str
    budget: str
    unit: str
    until: str
    seconds: int = 0


class PriceMissing(LongthreadError, exit_code=2):
    message = """The budget of {whose} is in money, and the model {model} has no price. The operator of the server sets
    one with `longthread prices set`."""
    whose: str
    model: str


class IssuerNotFound(LongthreadError, exit_code=3):
    message = "There is no login provider {issuer}. The page /login shows those there are."
    issuer: str


class IssuerUnreachable(LongthreadError):
    message = "The login provider {issuer} does not answer: {reason} Try again, or ask an administrator."
    issuer: str


class IssuerAnswerRefused(LongthreadError):
    message = "What the login provider {issuer} answered was refused: {reason} Log in again, or ask an administrator."
    issuer: str


class LoginDenied(LongthreadError, exit_code=2):
    message = "The login provider did not let you in, or you left its page. Log in again."


class LoginExpired(LongthreadError, exit_code=2):
    message = "This login took too long, or was begun in another window. Log in again."


class AccountPending(LongthreadError, exit_code=2):
    message = "Your account waits for an administrator to let you in."


class AccountDisabled(LongthreadError, exit_code=2):
    message = "Your account is switched off. Ask an administrator."


class SignupRefused(LongthreadError, exit_code=2):
    message = "You have no account on this server. Ask an administrator for one."


class DomainRefused(LongthreadError, exit_code=2):
    message = "Your e-mail address is not of a domain that may log in here, or your provider did not verify it."


class ProxyRefused(LongthreadError, exit_code=2):
    message = "A header that says who you are was refused: {reason} Open this server by its login proxy."
