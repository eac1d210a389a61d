// One scene with AG-UI's own client: `node ag_ui.mjs URL AGENT SCENE`. Prints what the client holds at its end.
import { HttpAgent } from '@ag-ui/client';

const [url, name, scene] = process.argv.slice(2);
const outcomes = [];
const watcher = {
  onRunFinishedEvent: ({ event, outcome }) => void outcomes.push([event.runId, outcome]),
  onRunErrorEvent: ({ event }) => void outcomes.push(['error', event.message]),
};

function open(messages = []) {
  const agent = new HttpAgent({ url: `${url}/ag-ui/${name}`, threadId: 't', initialMessages: messages });
  agent.subscribe(watcher);
  return agent;
}

function say(agent, id, content) {
  agent.addMessage({ id, role: 'user', content });
}

/** Leaves the run as soon as it has begun. */
async function leave(agent, runId) {
  await agent.runAgent({ runId }, { onRunStartedEvent: () => void setTimeout(() => agent.abortRun()) });
}

const scenes = {
  async talk(agent) {
    for (const [id, question] of [['u1', 'First?'], ['u2', 'Second?']]) {
      say(agent, id, question);
      await agent.runAgent({ runId: `run-${id}` });
    }
    return agent;
  },
  async again(agent) {
    say(agent, 'u1', 'First?');
    await leave(agent, 'r1');
    const [same, fresh] = [open(agent.messages), open()];
    console.log('left');
    await Promise.all([same.runAgent({ runId: 'r1' }), fresh.runAgent({ runId: 'r1' })]);
    if (JSON.stringify(texts(same)) !== JSON.stringify(texts(fresh))) throw new Error('the two differ');
    return same;
  },
  async stop(agent) {
    say(agent, 'u1', 'First?');
    const stop = () => void fetch(`${url}/api/conversations/t/stop`, { method: 'POST' });
    await agent.runAgent({ runId: 'r1' }, { onRunStartedEvent: stop });
    return agent;
  },
  async approve(agent) {
    say(agent, 'u1', 'Write to Ada.');
    await agent.runAgent({ runId: 'r1' });
    const resume = agent.pendingInterrupts.map(({ id }) => ({
      interruptId: id, status: 'resolved', payload: { type: 'approve' },
    }));
    await agent.runAgent({ runId: 'r2', resume });
    say(agent, 'u2', 'Thanks.');
    await agent.runAgent({ runId: 'r3' });
    return agent;
  },
  async edit(agent) {
    say(agent, 'u1', 'First?');
    await agent.runAgent({ runId: 'r1' });
    agent.setMessages([{ ...agent.messages[0], content: 'Other?' }]);
    await agent.runAgent({ runId: 'r2' });
    return agent;
  },
};

function texts(agent) {
  return agent.messages.filter(({ role, content }) => content && role !== 'tool').map(({ role, content }) => [role, content]);
}

const agent = await scenes[scene](open());
const calls = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []).map((call) => call.function.name);
const results = agent.messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content).ok);
console.log(JSON.stringify({ texts: texts(agent), calls, results, outcomes }));
