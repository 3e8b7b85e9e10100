import type { VaultClient } from '../client.ts'

/** The part of Mastra's messages that is used here. */
type Message = { role: string; content: { parts?: { type: string; text?: string }[] } }
type SystemMessage = { role: 'system'; content: string }

export type VaultProcessorOptions = {
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
 */
export class VaultProcessor {
  readonly id = 'memory-vault'
  readonly name = 'Memory Vault'
  readonly #vault: VaultClient
  readonly #options: Required<Pick<VaultProcessorOptions, 'store' | 'onError'>>
  readonly #session: { session_id?: string }

  constructor(vault: VaultClient, options: VaultProcessorOptions = {}) {
    const { sessionId, store = true, onError = () => {} } = options
    this.#vault = vault
    this.#options = { store, onError }
    this.#session = sessionId === undefined ? {} : { session_id: sessionId }
  }

  /** Before the model: adds the block to the system messages. */
  async processInput<Messages extends Message[], System extends object[]>(request: {
    messages: Messages
    systemMessages: System
  }): Promise<{ messages: Messages; systemMessages: System }> {
    const { messages, systemMessages } = request
    const turns = readTurns(messages)
    if (!turns.some(({ role }) => role === 'user')) return { messages, systemMessages }
    const context = await this.#vault
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
  }): Promise<Messages> {
    const { messages, messageList, result } = answered
    const said = readTurns(messageList.get.input.db()).findLast(({ role }) => role === 'user')
    if (!this.#options.store || !said || result.text.trim() === '') return messages
    const exchange = [said, { role: 'assistant' as const, content: result.text }]
    const body = { messages: exchange, ...this.#session }
    await this.#vault.call('POST /v1/memory/ingest', { body }).catch(this.#options.onError)
    return messages
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
