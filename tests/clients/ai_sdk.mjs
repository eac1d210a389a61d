// Two turns with a tool loop by Vercel's AI SDK. It prints what was answered, as JSON.
// node ai_sdk.mjs DIALECT URL PROMPT...
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';

const [dialect, url, ...prompts] = process.argv.slice(2);
const options = { baseURL: `${url}/v1`, apiKey: 'any' };
const thinking = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } };
const asked = {
  messages: () => ({ model: createAnthropic(options)('claude-sonnet-5'), providerOptions: thinking }),
  responses: () => ({ model: createOpenAI(options).responses('gpt-5') }),
  'responses-unstored': () => ({
    model: createOpenAI(options).responses('gpt-5'),
    providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } },
  }),
  completions: () => ({ model: createOpenAICompatible({ ...options, name: 'local' })('any-model') }),
}[dialect]();
const double = tool({
  description: 'Twice a number.',
  inputSchema: jsonSchema({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }),
  execute: async ({ n }) => `${2 * n}`,
});

let messages = [];
const answers = [];
for (const [place, prompt] of prompts.entries()) {
  messages.push({ role: 'user', content: prompt });
  const call = { ...asked, messages, tools: { double }, stopWhen: stepCountIs(5), maxRetries: 0 };
  const result = place % 2 ? streamText(call) : await generateText(call);
  answers.push(await result.text);
  const made = await result.responseMessages;
  messages = JSON.parse(JSON.stringify([...messages, ...made])); // as one that was kept in a file
}
console.log(JSON.stringify(answers));
