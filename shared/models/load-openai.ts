import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * The SDK in parts, each of which needs few that come after it. At once they hold the event loop for 0.2 s, so
 * 5 to 25 ms each, Node's own `fetch` 40.
 */
const parts: readonly (() => unknown)[] = [
  // Node loads it when it is first named.
  () => globalThis.Response,
  () => import('openai/core/error'),
  () => import('openai/core/streaming'),
  () => import('openai/core/uploads'),
  () => import('openai/resources/embeddings'),
  () => import('openai/auth'),
  () => import('openai/resources/admin/organization/projects'),
  () => import('openai/resources/admin'),
  () => import('openai/resources/beta/agents/environments'),
  () => import('openai/resources/beta/agents/sessions'),
  () => import('openai/resources/beta/agents'),
  () => import('openai/resources/vector-stores'),
  () => import('openai/resources/fine-tuning'),
  () => import('openai/resources/audio'),
  () => import('openai/lib/EventStream'),
  () => import('openai/resources/responses'),
  () => import('openai/resources/realtime'),
  () => import('openai/lib/ChatCompletionStream'),
  () => import('openai/resources/chat'),
  () => import('openai/resources/beta'),
  () => import('openai/resources'),
  () => import('openai'),
]

/** Loads the SDK; the event loop runs between its parts. */
export async function loadOpenAi(): Promise<void> {
  for (const load of parts) {
    await load()
    await nextTurn()
  }
}
