import type { VaultClient } from '../client.ts'

/** A part of a message or an answer: text, the call of a tool, or another type, which is passed on. */
type Part = { type: string; text?: string; delta?: string; providerExecuted?: boolean }
type Message = { role: string; content: string | Part[] }
type CallOptions = { prompt: Message[] }
type Generated = { content: Part[] }
type Streamed = { stream: ReadableStream<Part> }

/** The part of the AI SDK's middleware that is used here, equal in specifications 2 to 4. */
export type VaultMiddleware<Version extends string> = {
  readonly specificationVersion: Version
  transformParams<Params extends object>(options: { params: Params }): Promise<Params>
  wrapGenerate<Result extends object>(options: {
    doGenerate: () => PromiseLike<Result>
    params: object
  }): Promise<Result>
  wrapStream<Result extends object>(options: {
    doStream: () => PromiseLike<Result>
    params: object
  }): Promise<Result>
}

export type VaultMiddlewareOptions<Version extends string> = {
  /** A session in place of the core of the vault. */
  sessionId?: string
  /** false: answers from memory, and stores nothing. */
  store?: boolean
  /** Faults of the memory; the model is called all the same. */
  onError?: (error: unknown) => void
  /** The specification of the models that are wrapped: `v4` of AI SDK 7, `v3` of 6, `v2` of 5. */
  specificationVersion?: Version
}

type Turn = { role: 'user' | 'assistant'; content: string }

/** Turns whose block is kept for the further steps of a loop with tools, which get the same one. */
const blocksMax = 100

/**
 * Middleware of the AI SDK that gives each call what the vault remembers, and stores what the user asked
 * with the answer. The block stands in the last message of the user; what comes before it stays as it is,
 * and with it the prompt cache of the provider.
 */
export function vaultMiddleware<Version extends string = 'v4'>(
  vault: VaultClient,
  options: VaultMiddlewareOptions<Version> = {},
): VaultMiddleware<Version> {
  const { sessionId, store = true, onError = () => {}, specificationVersion = 'v4' } = options
  const session = sessionId === undefined ? {} : { session_id: sessionId }
  const blocks = new Map<string, Promise<string | null>>()

  function recall(turns: Turn[], isStep: boolean): Promise<string | null> {
    const asked = turns.slice(0, turns.findLastIndex(({ role }) => role === 'user') + 1)
    const key = JSON.stringify(asked)
    const known = blocks.get(key)
    if (known && isStep) return known
    const block: Promise<string | null> = vault
      .call('POST /v1/memory/prepare', { body: { messages: asked, ...session } })
      .then(({ context }) => context)
      .catch((error: unknown) => {
        if (blocks.get(key) === block) blocks.delete(key)
        onError(error)
        return null
      })
    blocks.delete(key)
    blocks.set(key, block)
    if (blocks.size > blocksMax) blocks.delete(blocks.keys().next().value!)
    return block
  }

  async function record(params: object, answer: string): Promise<void> {
    const said = readTurns(originals.get(params) ?? []).findLast(({ role }) => role === 'user')
    if (!store || !said) return
    const heard = answer.trim() === '' ? [] : [{ role: 'assistant' as const, content: answer }]
    const messages = [said, ...heard]
    await vault.call('POST /v1/memory/ingest', { body: { messages, ...session } }).catch(onError)
  }

  /** The prompt as the program wrote it, of the parameters that were made from it. */
  const originals = new WeakMap<object, Message[]>()

  return {
    specificationVersion: specificationVersion as Version,
    async transformParams({ params }) {
      const { prompt } = params as unknown as CallOptions
      const turns = readTurns(prompt)
      const isStep = prompt.at(-1)?.role !== 'user'
      const block = turns.some(({ role }) => role === 'user') ? await recall(turns, isStep) : null
      const changed = block === null ? { ...params } : { ...params, prompt: insert(prompt, block) }
      originals.set(changed, prompt)
      return changed
    },
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate()
      const { content } = result as unknown as Generated
      const answer = joinTexts(content)
      if (!content.some(isToolCall) && answer.trim() !== '') await record(params, answer)
      return result
    },
    async wrapStream({ doStream, params }) {
      const result = await doStream()
      const { stream } = result as unknown as Streamed
      const recorded = recordStream(stream, answer => record(params, answer))
      return { ...result, stream: recorded }
    },
  }
}

/**
 * The same stream; what was heard of the answer is told at its end, or when the person stops it. The call of a tool of
 * the program tells nothing: another step follows.
 */
function recordStream(
  stream: ReadableStream<Part>,
  tell: (answer: string) => Promise<void>,
): ReadableStream<Part> {
  const reader = stream.getReader()
  let answer = ''
  let isStep = false
  return new ReadableStream<Part>({
    async pull(controller) {
      const { done, value: part } = await reader.read().catch(async (error: unknown) => {
        // An abort of the call, or a connection that was lost.
        if (answer !== '') await tell(answer)
        throw error
      })
      if (done) {
        if (!isStep && answer.trim() !== '') await tell(answer)
        return controller.close()
      }
      if (part.type === 'text-start' && answer !== '') answer += '\n'
      if (part.type === 'text-delta') answer += part.delta ?? ''
      if (isToolCall(part)) isStep = true
      controller.enqueue(part)
    },
    async cancel(reason) {
      await Promise.all([reader.cancel(reason), tell(answer)])
    },
  })
}

/** Whether the program runs the tool, and another step follows: a tool of the provider ran in this one. */
const isToolCall = ({ type, providerExecuted }: Part): boolean =>
  type === 'tool-call' && providerExecuted !== true

/** The texts of a message or an answer, each on a line of its own: a tool of the provider may stand between. */
const joinTexts = (parts: readonly Part[]): string =>
  parts.flatMap(({ type, text }) => (type === 'text' && text ? [text] : [])).join('\n')

/** The texts of the user and the assistant; instructions and results of tools are left out. */
function readTurns(prompt: readonly Message[]): Turn[] {
  return prompt.flatMap(({ role, content }) => {
    if (role !== 'user' && role !== 'assistant') return []
    const text = typeof content === 'string' ? content : joinTexts(content)
    return text.trim() === '' ? [] : [{ role, content: text }]
  })
}

/** The prompt with a block before the words of the last message of the user. */
function insert(prompt: readonly Message[], block: string): Message[] {
  const at = prompt.findLastIndex(({ role }) => role === 'user')
  const { content, ...message } = prompt[at]!
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const changed = [...prompt]
  changed[at] = { ...message, content: [{ type: 'text', text: block }, ...parts] }
  return changed
}
