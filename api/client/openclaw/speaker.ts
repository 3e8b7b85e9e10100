/** What OpenClaw tells of a run (2026.9.6, `PluginHookAgentContext`). */
export type Context = {
  runId?: string
  sessionKey?: string
  agentId?: string
  trigger?: string
  /** The program by which a message came, such as `discord`; none for a person at the machine. */
  channel?: string
  messageProvider?: string
  /** The sender as the channel names them. */
  senderId?: string
  chatId?: string
  inputProvenance?: { kind?: string }
}

/** Whose words a run is about: the owner's, those of another person in a private conversation, or undefined. */
export type Speaker = 'owner' | { id: string } | undefined

type Owner = {
  /** Senders who are the owner, as `channel:id` or `id`. */
  ids: readonly string[]
  /** Whether groups have sessions apart from the main one. */
  hasGroupSessions: boolean
}

/** Channels of a person at the machine, who is the owner. */
const ownChannels = new Set(['', 'cli', 'tui', 'webchat', 'control-ui', 'internal'])
/** Sessions that the owner opens at the machine: the main one, by an id, in the dashboard, or by a name without a colon. */
const ownSession = /^(?:[^:]+|explicit:.+|dashboard:.+)$/
/** The private conversation of one sender, by the scopes of `session.dmScope`. */
const directSession = /(?:^|:)(?:direct|dm):/

/**
 * Finds who speaks. A run that is no message of a person (jobs, heartbeats, mail and web hooks, other agents) and one in
 * a group, a channel or a call has no speaker; what is not known to be a private conversation counts as none.
 */
export function findSpeaker(context: Context, owner: Owner): Speaker {
  const { trigger = 'user', inputProvenance, sessionKey = 'main', senderId } = context
  if (trigger !== 'user' || (inputProvenance?.kind ?? 'external_user') !== 'external_user')
    return undefined
  const channel = context.channel ?? context.messageProvider ?? ''
  const session = sessionKey.replace(/^agent:[^:]+:/, '')
  if (ownChannels.has(channel)) return ownSession.test(session) ? 'owner' : undefined
  if (senderId === undefined) return undefined
  // The main session holds private conversations alone, as long as groups have sessions of their own.
  const isPrivate = directSession.test(session) || (session === 'main' && owner.hasGroupSessions)
  if (!isPrivate) return undefined
  const id = `${channel}:${senderId}`
  return owner.ids.includes(id) || owner.ids.includes(senderId) ? 'owner' : { id }
}
