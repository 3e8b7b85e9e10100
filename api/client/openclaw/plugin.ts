import { vaultClient, type VaultClient } from '../client.ts'

/** The part of OpenClaw's plug-in interface that is used here (2026.9.6). */
type Host = {
  pluginConfig?: Record<string, unknown>
  logger: { warn(message: string): void }
  on(hook: 'before_prompt_build', handler: (event: Prompt, context: Context) => unknown): void
  on(hook: 'agent_end', handler: (event: Ended, context: Context) => unknown): void
  registerTool(tool: Tool): void
  registerMemoryCapability(capability: {
    promptBuilder(request: { availableTools: Set<string> }): string[]
  }): void
}
type Context = { runId?: string; sessionKey?: string; agentId?: string; trigger?: string }
type Prompt = { prompt: string; currentUserMessage?: string; messages: unknown[] }
type Ended = { messages: unknown[]; success: boolean }
type Message = { role?: string; content?: string | { type?: string; text?: string }[] }
type Turn = { role: 'user' | 'assistant'; content: string }
type Tool = {
  name: string
  description: string
  parameters: object
  execute(id: string, parameters: Record<string, unknown>): Promise<object>
}

/** A turn waits no longer for what is remembered. */
const recallTimeoutMs = 1500
/** Turns before the question that are asked with. */
const turnsMax = 6
/** Runs whose question is kept until they end. */
const runsMax = 1000

/** The plug-in: `plugins.slots.memory = "memory-vault"` in OpenClaw's configuration selects it. */
export default {
  id: 'memory-vault',
  name: 'Memory Vault',
  description:
    'Recalls what a Memory Vault remembers before each turn and stores the turn after it',
  kind: 'memory',
  register,
}

function register(host: Host): void {
  const { baseUrl, key, recall = true, store = true } = host.pluginConfig ?? {}
  // The host loads plug-ins without settings, too, to show what they are.
  if (typeof baseUrl !== 'string' || typeof key !== 'string') {
    host.logger.warn('memory-vault: set baseUrl and key in plugins.entries.memory-vault.config')
    return
  }
  const vault = vaultClient(baseUrl, key)
  const warn = (error: unknown): void => host.logger.warn(`memory-vault: ${String(error)}`)
  const asked = new Map<string, string>()

  host.on('before_prompt_build', async (event, context) => {
    const question = event.currentUserMessage ?? event.prompt
    if (isBackground(context) || question.trim() === '') return undefined
    asked.set(nameOf(context), question)
    if (asked.size > runsMax) asked.delete(asked.keys().next().value!)
    if (recall !== true) return undefined
    const messages = [
      ...readTurns(event.messages).slice(-turnsMax),
      { role: 'user' as const, content: question },
    ]
    try {
      const signal = AbortSignal.timeout(recallTimeoutMs)
      const answer = await vault.call('POST /v1/memory/prepare', { body: { messages } }, { signal })
      return answer.context === null ? undefined : { prependContext: answer.context }
    } catch (error) {
      warn(error)
      return undefined
    }
  })

  host.on('agent_end', async (event, context) => {
    const question = asked.get(nameOf(context))
    asked.delete(nameOf(context))
    const answer = readTurns(event.messages).at(-1)
    if (store !== true || !event.success || question === undefined || answer?.role !== 'assistant')
      return
    const messages = [{ role: 'user' as const, content: question }, answer]
    const { agentId } = context
    const metadata = agentId === undefined ? {} : { metadata: { agent_id: agentId } }
    await vault.call('POST /v1/memory/ingest', { body: { messages, ...metadata } }).catch(warn)
  })

  for (const tool of tools(vault)) host.registerTool(tool)
  host.registerMemoryCapability({
    promptBuilder: ({ availableTools }) =>
      availableTools.has('memory_recall')
        ? [
            '## Memory',
            'What was said in earlier conversations comes with the message where it matters. memory_recall looks for more, memory_store keeps a fact, memory_forget removes one by its id.',
            '',
          ]
        : [],
  })
}

/** The heartbeat and jobs of the agent are no words of a person. */
const isBackground = ({ trigger }: Context): boolean => trigger !== undefined && trigger !== 'user'

const nameOf = ({ runId, sessionKey }: Context): string => runId ?? sessionKey ?? ''

/** The texts of the user and the assistant; results of tools and thoughts are left out. */
function readTurns(messages: readonly unknown[]): Turn[] {
  return (messages as Message[]).flatMap(({ role, content = '' }) => {
    if (role !== 'user' && role !== 'assistant') return []
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    const text = parts.map(part => (part.type === 'text' ? (part.text ?? '') : '')).join('')
    return text.trim() === '' ? [] : [{ role, content: text }]
  })
}

const text = (description: string): object => ({ type: 'string', minLength: 1, description })

function tools(vault: VaultClient): Tool[] {
  return [
    {
      name: 'memory_recall',
      description: 'Searches what is remembered of earlier conversations.',
      parameters: {
        type: 'object',
        required: ['query'],
        properties: {
          query: text('what to look for, in plain words'),
          limit: { type: 'integer', minimum: 1, maximum: 50 },
        },
      },
      async execute(_id, { query, limit = 8 }) {
        const body = { query: String(query), limit: Number(limit) }
        const { memories } = await vault.call('POST /v1/memory/search', { body })
        const lines = memories.map(({ id, timestamp, content }) => `${id} ${timestamp} ${content}`)
        return toResult(lines.join('\n') || 'Nothing is remembered of this.', { memories })
      },
    },
    {
      name: 'memory_store',
      description: 'Stores a fact for good, as one sentence that stands for itself.',
      parameters: { type: 'object', required: ['text'], properties: { text: text('the fact') } },
      async execute(_id, { text: content }) {
        const messages = [{ role: 'user' as const, content: String(content) }]
        await vault.call('POST /v1/memory/ingest', { body: { messages }, query: { wait: true } })
        return toResult('Stored.', {})
      },
    },
    {
      name: 'memory_forget',
      description: 'Deletes a memory for good.',
      parameters: {
        type: 'object',
        required: ['id'],
        properties: { id: text('as memory_recall shows it') },
      },
      async execute(_id, { id }) {
        const body = { ids: [String(id)] }
        const answer = await vault.call('POST /v1/memory/delete-ids', { body })
        const isGone = 'deleted' in answer && answer.deleted === 1
        return toResult(isGone ? 'Deleted.' : 'No memory has this id.', {})
      },
    },
  ]
}

const toResult = (text: string, details: object): object => ({
  content: [{ type: 'text', text }],
  details,
})
