"""The commands, a module each."""

COMMANDS = {
    "demo": "longthread.cli.commands.serve:demo",
    "serve": "longthread.cli.commands.serve:serve",
    "gateway": "longthread.cli.commands.serve:gateway",
    "mcp": "longthread.cli.commands.serve:mcp",
    "ask": "longthread.cli.commands.ask:ask",
    "chat": "longthread.cli.commands.ask:chat",
    "resume": "longthread.cli.commands.ask:resume",
    "approve": "longthread.cli.commands.ask:approve",
    "reject": "longthread.cli.commands.ask:reject",
    "stop": "longthread.cli.commands.ask:stop",
    "state": "longthread.cli.commands.threads:state",
    "view": "longthread.cli.commands.view:view",
    "recall": "longthread.cli.commands.recall:recall",
    "forget": "longthread.cli.commands.memories:forget",
    "login": "longthread.cli.commands.login:login",
    "logout": "longthread.cli.commands.login:logout",
    "whoami": "longthread.cli.commands.login:whoami",
    "doctor": "longthread.cli.commands.doctor:doctor",
    "import": "longthread.cli.commands.transfer:import_",
    "export": "longthread.cli.commands.transfer:export",
    "apply": "longthread.cli.commands.catalog:apply",
    "threads": "longthread.cli.commands.threads:threads",
    "memories": "longthread.cli.commands.memories:memories",
    "feedback": "longthread.cli.commands.annotations:feedback",
    "agents": "longthread.cli.commands.catalog:agents",
    "skills": "longthread.cli.commands.catalog:skills",
    "tools": "longthread.cli.commands.catalog:tools",
    "sources": "longthread.cli.commands.teach:sources",
    "upstreams": "longthread.cli.commands.catalog:upstreams",
    "routes": "longthread.cli.commands.catalog:routes",
    "users": "longthread.cli.commands.users:users_app",
    "groups": "longthread.cli.commands.users:groups_app",
    "keys": "longthread.cli.commands.keys:keys",
    "prices": "longthread.cli.commands.prices:prices",
    "db": "longthread.cli.commands.db:db",
    "plugins": "longthread.cli.commands.plugins:plugins",
}
"""Each command, with the place of its function or of its group, in the order of the help."""
PACKAGE_COMMANDS = {"eval": "longthread-evals"}
"""Commands that other packages of the repository offer as plugins, each with its package."""

ON_SERVER = frozenset(
    (
        "ask",
        "chat",
        "resume",
        "approve",
        "reject",
        "stop",
        "state",
        "recall",
        "threads list",
        "threads search",
        "threads show",
        "threads rename",
        "threads tag",
        "threads metadata",
        "threads expire",
        "threads archive",
        "threads unarchive",
        "threads pin",
        "threads unpin",
        "threads delete",
        "memories list",
        "memories add",
        "memories edit",
        "memories search",
        "memories show",
        "memories forget",
    )
)
"""The commands that also work on a server."""
ALWAYS_LOCAL = frozenset(("demo", "serve", "gateway", "mcp", "doctor", "plugins", "eval"))
"""The commands that are about this machine, whether its user is logged in to a server or not."""
