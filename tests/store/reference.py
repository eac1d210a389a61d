"""The log in memory, as plainly as it can be said: what stores are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from longthread.errors import EntryNotFound, ThreadConflict, ThreadNotFound
from longthread.model.entry import Draft

NodeContent = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """An entry: the draft that it was made from, and its place.

    `own` says that it has the draft's id for its own. `behind` is the entry that it was put behind; where that was
    pruned, its `parent_seq` is 0.
    """

    draft: Draft
    seq: int
    parent_seq: int
    own: bool
    behind: int

    @property
    def content(self) -> NodeContent:
        """What makes two drafts of one id the same."""
        return content_of(self.draft)


def content_of(draft: Draft) -> NodeContent:
    """What makes two drafts of one id the same."""
    calls = tuple((call.id, call.name, repr(dict(call.args))) for call in draft.tool_calls)
    return draft.id, draft.role, draft.text, draft.tool_call_id, draft.name, draft.payload, calls


@dataclass(slots=True)
class ReferenceTree:
    """A thread. Entries before `first` were pruned."""

    user_id: str
    tip: int = 0
    count: int = 0
    first: int = 1
    nodes: dict[int, Node] = field(default_factory=dict)


class ReferenceLog:
    """`store/log.py` without a database. Errors are the same by type."""

    def __init__(self) -> None:
        self.trees: dict[str, ReferenceTree] = {}

    def create_thread(self, thread_id: str, *, user_id: str) -> None:
        """Make a thread, or find it."""
        if self.trees.setdefault(thread_id, ReferenceTree(user_id)).user_id != user_id:
            raise ThreadNotFound(thread=thread_id)

    def delete_thread(self, thread_id: str, *, user_id: str) -> None:
        """Forget a thread."""
        if self._tree(thread_id).user_id != user_id:
            raise ThreadNotFound(thread=thread_id)
        del self.trees[thread_id]

    def extend(
        self, thread_id: str, drafts: Sequence[Draft], *, parent: int | None = None, expect: int | None = None
    ) -> list[Node]:
        """Add behind `parent` or the tip, and move the tip; nothing where the branch ends like that already."""
        tree = self._tree(thread_id)
        if parent is None and drafts:
            last = self.branch(thread_id, tree.tip)[-len(drafts) :]
            # What was pruned from the beginning of the branch need not be sent again, and may be.
            asked = drafts[-len(last) :] if last and 0 < last[0].behind < tree.first else drafts
            same = bool(last) and [node.content for node in last] == [content_of(draft) for draft in asked]
            if same and expect in (None, tree.tip, last[0].parent_seq):
                return last
        if expect is not None and expect != tree.tip:
            raise ThreadConflict(thread=thread_id)
        start = tree.tip if parent is None else parent
        nodes = self.add(thread_id, drafts, parent=start)
        tree.tip = nodes[-1].seq if nodes else start
        return nodes

    def add(self, thread_id: str, drafts: Iterable[Draft], *, parent: int) -> list[Node]:
        """Add behind `parent`, and leave the tip."""
        tree = self._tree(thread_id)
        self._expect_node(thread_id, tree, parent)
        nodes: list[Node] = []
        for draft in drafts:
            nodes.append(self._place(tree, draft, parent))
            parent = nodes[-1].seq
        return nodes

    def set_tip(self, thread_id: str, seq: int) -> None:
        """Make an entry the tip."""
        tree = self._tree(thread_id)
        self._expect_node(thread_id, tree, seq)
        tree.tip = seq

    def prune(self, thread_id: str, window: int) -> None:
        """Forget what stands before the question that begins the branch's last `window` entries; where the branch is
        empty, everything."""
        tree = self._tree(thread_id)
        branch = self.branch(thread_id, tree.tip)
        until = branch[-window:][0].seq if branch else tree.count + 1
        questions = [node.seq for node in branch if node.draft.role == "user" and node.seq <= until]
        cut = max(questions, default=tree.first) if branch else until
        if cut > tree.first:
            tree.first = cut
            tree.nodes = {
                seq: node if node.behind >= cut else replace(node, parent_seq=0)
                for seq, node in tree.nodes.items()
                if seq >= cut
            }

    def branch(self, thread_id: str, tip: int) -> list[Node]:
        """The entries from the root to `tip`."""
        tree = self._tree(thread_id)
        found: list[Node] = []
        while tip:
            self._expect_node(thread_id, tree, tip)
            found.append(tree.nodes[tip])
            tip = found[-1].parent_seq
        return found[::-1]

    def _tree(self, thread_id: str) -> ReferenceTree:
        if thread_id not in self.trees:
            raise ThreadNotFound(thread=thread_id)
        return self.trees[thread_id]

    def _expect_node(self, thread_id: str, tree: ReferenceTree, seq: int) -> None:
        if seq and seq not in tree.nodes:
            raise EntryNotFound(thread=thread_id, entry=seq)

    def _place(self, tree: ReferenceTree, draft: Draft, parent_seq: int) -> Node:
        """The entry that says this here, or a new one: with the draft's id when that is free, else as a sibling.

        At the root, a sibling is found even when what it was the sibling of was pruned.
        """
        alike = [node for node in tree.nodes.values() if node.draft.id == draft.id]
        own = next((node for node in alike if node.own), None)
        if own is not None or parent_seq == 0:
            for node in alike:
                place = node.parent_seq if node.own else node.behind
                if node.content == content_of(draft) and place == parent_seq:
                    return node
        tree.count += 1
        tree.nodes[tree.count] = Node(draft, tree.count, parent_seq, own is None, parent_seq)
        return tree.nodes[tree.count]
