"""What a task has written, on its way into the store before its step is over."""

from __future__ import annotations

from longthread.agent.record import TASK_BYTES, Task
from longthread.agent.remembered import Memory
from longthread.store import checkpoints
from longthread.store.checkpoints import Head
from longthread.store.driver import Transaction


async def put_in_body(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str, memory: Memory, task: Task) -> bool:
    """Store it in the body of its checkpoint: where this process has put that, knows all of it, and it stays small.

    What is remembered of the checkpoint changes before the commit, while the thread is locked: the next one to write
    goes on from it. Whoever then finds it not so, because the commit has failed, stores a row.
    """
    newest = memory.newest.get(ns)
    if newest is None or newest.id != checkpoint_id or task.id in memory.tasks.get((ns, checkpoint_id), {}):
        return False
    grown = newest.with_task(task)
    body = grown.body()
    if len(body) > TASK_BYTES:
        return False
    head = Head(newest.n, newest.id)
    if not await checkpoints.update_body(tx, thread_id, ns, head, body, newest.writes, grown.writes):
        return False
    memory.newest[ns] = grown
    return True


async def put_in_row(tx: Transaction, thread_id: str, ns: str, checkpoint_id: str, task: Task) -> Task:
    """Store it in the task's row; all that the row has then."""
    if await checkpoints.put_writes(tx, thread_id, task.row(ns, checkpoint_id)):
        return task
    rows = await checkpoints.writes(tx, thread_id, ns, checkpoint_id)
    [there] = [Task.from_row(row) for row in rows if row.task_id == task.id]
    there.merge(task)
    await checkpoints.replace_writes(tx, thread_id, there.row(ns, checkpoint_id))
    return there
