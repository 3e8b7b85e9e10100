import type { Pins } from '#test/programs/install.ts'

/** A library of npm and the versions of it that are run, the oldest first. */
type NodeProgram = {
  /** Its name in the guide of frameworks. */
  name: string
  /** A file in `node/`, or test files that look for the library in `CLIENT_MODULES`. */
  files: string[]
  /** The first pin of each is the version that the page names. */
  versions: Pins[]
}

export const nodePrograms: NodeProgram[] = [
  {
    name: 'Vercel AI SDK',
    files: ['ai-sdk.mjs'],
    versions: [
      ['ai@5.0.277', '@ai-sdk/openai@2', 'zod@4.1.13'],
      ['ai@6.0.326', '@ai-sdk/openai@3', 'zod@4.1.13'],
      ['ai@7.0.173', '@ai-sdk/openai@4.0.118', 'zod@4.6.7'],
    ],
  },
  {
    name: "Anthropic's memory tool",
    files: ['anthropic-memory.mjs'],
    versions: [['@anthropic-ai/sdk@1.0.0'], ['@anthropic-ai/sdk@1.14.0']],
  },
  {
    name: 'OpenAI Agents SDK',
    files: ['openai-agents.mjs'],
    versions: [
      ['@openai/agents@0.8.0', 'zod@4.1.13'],
      ['@openai/agents@0.20.0', 'zod@4.6.7'],
    ],
  },
  {
    name: 'LangGraph',
    files: ['test/api/client/adapters/langgraph-store.test.ts'],
    versions: [['@langchain/langgraph@1.7.3', '@langchain/core@1.2.13']],
  },
  {
    name: 'Mastra',
    files: ['test/api/client/adapters/mastra-processor.test.ts'],
    versions: [['@mastra/core@1.71.0']],
  },
  {
    name: 'n8n',
    files: ['test/api/client/n8n.test.ts'],
    versions: [['n8n-core@2.41.1', 'n8n-workflow@2.41.0']],
  },
  {
    name: 'OpenClaw',
    files: ['test/api/client/openclaw.test.ts'],
    versions: [['openclaw@2026.9.6']],
  },
]
