// What providers call themselves, by the ids that models are named with.

const NAMES: Readonly<Record<string, string>> = {
  anthropic: "Anthropic",
  deepseek: "DeepSeek",
  google_genai: "Google Gemini",
  groq: "Groq",
  lmstudio: "LM Studio",
  mistralai: "Mistral AI",
  ollama: "Ollama",
  openai: "OpenAI",
  xai: "xAI",
};

export const providerName = (id: string | null): string => NAMES[id ?? ""] ?? id ?? "";
