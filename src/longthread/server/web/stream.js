// A run's events as they come, handed to the view of its turn.

/**
 * Watches a run from its first event to its last and tells `view` what happens. The browser connects again by itself
 * and says which event it read last, so that nothing is told twice. `onEnd(removed)` is told whether the question was
 * removed from the queue. Returns a function that stops watching.
 */
export function watch(path, view, { onEnd, onTrouble }) {
  const source = new EventSource(path);
  const calls = new Map();
  const steps = new Map();
  let thought = "";

  const finish = (removed = false) => {
    source.close();
    onEnd(removed);
  };

  const handlers = {
    RUN_STARTED: (event) => {
      // A run that waited for a person is started again: the time from its first start on counts.
      if (view.status === "waiting") view.reopen();
      else view.start({ id: event.runId, ...event.metadata?.longthread, at: event.timestamp });
    },
    TEXT_MESSAGE_START: (event) => view.beginText(event.messageId),
    TEXT_MESSAGE_CONTENT: (event) => view.addText(event.messageId, event.delta),
    REASONING_MESSAGE_CONTENT: (event) => (thought += event.delta),
    STEP_STARTED: (event) => steps.set(event.metadata?.longthread?.callId, event.metadata?.longthread?.step),
    TOOL_CALL_START: (event) => calls.set(event.toolCallId, { action: event.toolCallName, args: "" }),
    TOOL_CALL_ARGS: (event) => (calls.get(event.toolCallId).args += event.delta),
    TOOL_CALL_END: (event) => {
      const { action, args } = calls.get(event.toolCallId);
      const step = steps.get(event.toolCallId);
      view.beginStep({ call_id: event.toolCallId, step, action, args: JSON.parse(args || "{}"), thought });
      thought = "";
    },
    TOOL_CALL_RESULT: (event) => {
      const note = event.metadata?.longthread ?? {};
      const observation = JSON.parse(event.content);
      view.endStep(event.toolCallId, { ok: note.ok, elapsed_ms: note.elapsedMs, observation });
    },
    CUSTOM: (event) => {
      if (event.name === "longthread.warning") view.warn(event.value.message);
      if (event.name === "longthread.text_withdrawn") view.withdrawText(event.value.messageId);
      if (event.name === "longthread.decided") view.decide(event.value.calls);
      if (event.name === "longthread.question_removed") finish(true);
      if (event.name === "longthread.interrupted") {
        view.end({ status: "interrupted", outcome: {} });
        finish();
      }
    },
    RUN_FINISHED: (event) => {
      const { status, ...outcome } = event.result;
      view.end({ status, outcome, at: event.timestamp });
      // One that waits may have gone on since: then more is told, else the server closes the stream.
      if (status !== "waiting") finish();
    },
    RUN_ERROR: (event) => {
      view.end({ status: "failed", outcome: { error: event.metadata?.longthread?.error ?? { type: event.code, message: event.message } }, at: event.timestamp });
      finish();
    },
  };

  source.onopen = () => onTrouble(false);
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    handlers[event.type]?.(event);
  };
  source.onerror = () => {
    // The run waits, and no more is told.
    if (view.status === "waiting") finish();
    // Closed for good: the run was deleted, or all of it was read before.
    else if (source.readyState === EventSource.CLOSED) onEnd();
    else onTrouble(true);
  };
  return () => source.close();
}
