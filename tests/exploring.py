"""Runs state machines."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def explore(machine: Callable[[], RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Take so many random walks of so many steps; what goes wrong is told with how to repeat it."""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
