import { vaultClient, type VaultClient } from '../client.ts'
import { findSpeaker, type Context, type Speaker } from './speaker.ts'

/** The part of OpenClaw's plug-in interface that is used here (2026.9.6). */
type Host = {
  pluginConfig?: Record<string, unknown>
  config?: HostConfig
  logger: { warn(message: string): void }
  on(hook: 'before_prompt_build', handler: (event: Prompt, context: Context) => unknown): void
  on(hook: 'agent_end', handler: (event: Ended, context: Context) => unknown): void
  registerTool(create: (context: ToolContext) => Tool[] | null, options: { names: string[] }): void
  registerMemoryCapability(capability: {
    promptBuilder(request: { availableTools: Set<string> }): string[]
  }): void
}
/** OpenClaw's own configuration: who its owner is, and whether groups have sessions of their own. */
type HostConfig = {
  commands?: { ownerAllowFrom?: unknown[] }
  session?: { groupScope?: string }
  /** Routes may have scopes of their own. */
  bindings?: { session?: { groupScope?: string } }[]
}
/** What a tool is made for; the host vouches for its sender. */
type ToolContext = {
  sessionKey?: string
  messageChannel?: string
  requesterSenderId?: string
  nativeChannelId?: string
  senderIsOwner?: boolean
}
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
  const { baseUrl, key, recall = true, store = true, user, owners } = host.pluginConfig ?? {}
  // The host loads plug-ins without settings, too, to show what they are.
  if (typeof baseUrl !== 'string' || typeof key !== 'string') {
    host.logger.warn('memory-vault: set baseUrl and key in plugins.entries.memory-vault.config')
    return
  }
  const { commands, session, bindings = [] } = host.config ?? {}
  const known = Array.isArray(owners) ? owners : (commands?.ownerAllowFrom ?? [])
  const owner = {
    ids: known.map(String),
    hasGroupSessions: ![session, ...bindings.map(one => one.session)].some(
      one => one?.groupScope === 'main',
    ),
  }
  const warn = (error: unknown): void => host.logger.warn(`memory-vault: ${String(error)}`)
  /** The vault of a speaker: the owner's, with a key that names users also that of another person. */
  const openVault = (speaker: Speaker): VaultClient | undefined => {
    if (typeof user !== 'string') return speaker === 'owner' ? vaultClient(baseUrl, key) : undefined
    if (speaker === undefined) return undefined
    return vaultClient(baseUrl, key, { user: speaker === 'owner' ? user : speaker.id })
  }
  const asked = new Map<string, { question: string; vault: VaultClient }>()

  host.on('before_prompt_build', async (event, context) => {
    const question = event.currentUserMessage ?? event.prompt
    const vault = openVault(findSpeaker(context, owner))
    if (!vault || question.trim() === '') return undefined
    asked.set(nameOf(context), { question, vault })
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
    const turn = asked.get(nameOf(context))
    asked.delete(nameOf(context))
    const answer = readTurns(event.messages).at(-1)
    if (store !== true || !event.success || !turn || answer?.role !== 'assistant') return
    const messages = [{ role: 'user' as const, content: turn.question }, answer]
    const { agentId } = context
    const metadata = agentId === undefined ? {} : { metadata: { agent_id: agentId } }
    await turn.vault.call('POST /v1/memory/ingest', { body: { messages, ...metadata } }).catch(warn)
  })

  host.registerTool(
    ({
      messageChannel: channel,
      requesterSenderId,
      senderIsOwner,
      nativeChannelId,
      sessionKey,
    }) => {
      const ids = senderIsOwner && requesterSenderId ? [requesterSenderId] : owner.ids
      const context = {
        ...(sessionKey !== undefined && { sessionKey }),
        ...(channel !== undefined && { channel }),
        ...(requesterSenderId !== undefined && { senderId: requesterSenderId }),
        ...(nativeChannelId !== undefined && { chatId: nativeChannelId }),
      }
      const vault = openVault(findSpeaker(context, { ...owner, ids }))
      return vault ? tools(vault) : null
    },
    { names: ['memory_recall', 'memory_store', 'memory_forget'] },
  )
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
        const lines = memories.map(
          ({ id, timestamp, content }) => `${id} ${timestamp} ${oneLine(content)}`,
        )
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

/** A memory with line breaks must not look like several; the rest of a long one is a search away. */
const oneLine = (text: string): string => {
  const line = text
    .split(/[\r\n\u2028\u2029]+/)
    .map(part => part.trim())
    .join(' ⏎ ')
  return line.length > charactersMax ? `${line.slice(0, charactersMax)} …` : line
}

/** Characters of a memory that a tool shows. */
const charactersMax = 2000

const toResult = (text: string, details: object): object => ({
  content: [{ type: 'text', text }],
  details,
})
