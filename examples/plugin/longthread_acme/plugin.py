"""What the plugin offers: names, and where to find what they mean. Longthread imports a place when its name is used."""

from longthread.plugins import hookimpl


@hookimpl
def offer_models():
    return {"acme": "longthread_acme.model:AcmeModel"}


@hookimpl
def offer_engines():
    return {"acme": "longthread_acme.engine:DIALECT"}


@hookimpl
def offer_tool_types():
    return {"conversion": "longthread_acme.conversion:TYPE"}


@hookimpl
def offer_commands():
    return {"acme": "longthread_acme.command:show"}
