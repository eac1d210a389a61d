"""Every error that Longthread raises on purpose.

A class has a message and declares the fields that its message names. They are given by keyword when the error is
raised: a missing or a misspelt one is a TypeError.
"""

from longthread.errors import access, base, conversations, models, servers, store, tools
from longthread.errors.access import *
from longthread.errors.base import *
from longthread.errors.conversations import *
from longthread.errors.models import *
from longthread.errors.servers import *
from longthread.errors.store import *
from longthread.errors.tools import *

__all__: list[str] = []
__all__ += access.__all__
__all__ += base.__all__
__all__ += conversations.__all__
__all__ += models.__all__
__all__ += servers.__all__
__all__ += store.__all__
__all__ += tools.__all__
