import type { VaultClient } from '../client.ts'

/** The part of Mastra's messages that is used here. */
type Message = {
  role: string
  resourceId?: string
  content: { parts?: { type: string; text?: string }[] }
}
/** Where Mastra keeps whose memory a call uses. */
type RequestContext = { get(name: never): unknown }
const resourceName = 'mastra__resourceId'
type SystemMessage = { role: 'system'; content: string }

/** The vault of a resource, which is a person; undefined for one without. */
export type VaultOfResource = (resource: string) => VaultClient | undefined

export type VaultProcessorOptions = {
  /** The one resource whose vault it is: calls that name another one are answered without memory. */
  resource?: string
  /** A session in place of the core of the vault. */
  sessionId?: string
  /** false: answers from memory, and stores nothing. */
  store?: boolean
  /** Faults of the memory; the model is called all the same. */
  onError?: (error: unknown) => void
}

type Turn = { role: 'user' | 'assistant'; content: string }

/**
 * A processor of Mastra that gives an agent what the vault remembers, as a further system message, and
 * stores what the user asked with the answer. The same one stands in `inputProcessors` and `outputProcessors`.
 * Mastra's own memory of the thread stays as it is: it never holds the block.
 *
 * An agent that several people use gets a function that opens the vault of each resource. With one vault, calls that name a
 * resource are answered without memory, unless it is that of the options.
 */
export class VaultProcessor {
  readonly id = 'memory-vault'
  readonly name = 'Memory Vault'
  readonly #vault: VaultClient | VaultOfResource
  readonly #options: Pick<VaultProcessorOptions, 'resource'> &
    Required<Pick<VaultProcessorOptions, 'store' | 'onError'>>
  readonly #session: { session_id?: string }

  constructor(vault: VaultClient | VaultOfResource, options: VaultProcessorOptions = {}) {
    const { sessionId, resource, store = true, onError = () => {} } = options
    this.#vault = vault
    this.#options = { store, onError, ...(resource !== undefined && { resource }) }
    this.#session = sessionId === undefined ? {} : { session_id: sessionId }
  }

  /** Before the model: adds the block to the system messages. */
  async processInput<Messages extends Message[], System extends object[]>(request: {
    messages: Messages
    systemMessages: System
    requestContext?: RequestContext
  }): Promise<{ messages: Messages; systemMessages: System }> {
    const { messages, systemMessages, requestContext } = request
    const turns = readTurns(messages)
    const vault = this.#open(messages, requestContext)
    if (!vault || !turns.some(({ role }) => role === 'user')) return { messages, systemMessages }
    const context = await vault
      .call('POST /v1/memory/prepare', { body: { messages: turns, ...this.#session } })
      .then(answer => answer.context)
      .catch((error: unknown) => {
        this.#options.onError(error)
        return null
      })
    if (context === null) return { messages, systemMessages }
    const block: SystemMessage = { role: 'system', content: context }
    return { messages, systemMessages: [...systemMessages, block] as unknown as System }
  }

  /** After the last step: stores the turn. */
  async processOutputResult<Messages extends Message[]>(answered: {
    messages: Messages
    messageList: { get: { input: { db: () => Message[] } } }
    result: { text: string }
    requestContext?: RequestContext
  }): Promise<Messages> {
    const { messages, messageList, result, requestContext } = answered
    const asked = messageList.get.input.db()
    const said = readTurns(asked).findLast(({ role }) => role === 'user')
    const vault = this.#open([...asked, ...messages], requestContext)
    if (!vault || !this.#options.store || !said || result.text.trim() === '') return messages
    const exchange = [said, { role: 'assistant' as const, content: result.text }]
    const body = { messages: exchange, ...this.#session }
    await vault.call('POST /v1/memory/ingest', { body }).catch(this.#options.onError)
    return messages
  }

  /** The vault of the resource that a call names. */
  #open(messages: readonly Message[], context?: RequestContext): VaultClient | undefined {
    const named = context?.get(resourceName as never)
    const resource =
      typeof named === 'string' ? named : messages.findLast(one => one.resourceId)?.resourceId
    if (typeof this.#vault === 'function')
      return resource === undefined ? undefined : this.#vault(resource)
    if (resource === undefined || resource === this.#options.resource) return this.#vault
    this.#options.onError(
      new Error(
        `memory-vault: "${resource}" is not the resource of this vault; give VaultProcessor a function that opens the vault of each`,
      ),
    )
    return undefined
  }
}

/** The texts of the user and the assistant. */
function readTurns(messages: readonly Message[]): Turn[] {
  return messages.flatMap(({ role, content: { parts = [] } }) => {
    if (role !== 'user' && role !== 'assistant') return []
    const text = parts.map(({ type, text = '' }) => (type === 'text' ? text : '')).join('')
    return text.trim() === '' ? [] : [{ role, content: text }]
  })
}
