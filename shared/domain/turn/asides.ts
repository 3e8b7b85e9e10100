import { textParts, type Message } from '#shared/domain/message-content.ts'

/**
 * Calls that a program makes for itself: titles, tags, follow-up questions, search queries, routing, quota and
 * summaries. What stands in them has been said, or will be, in the conversation that they are about.
 */
export type AsideForm = {
  source: string
  /** Which text begins so: a part of a user's message, or of the system prompt. */
  of: 'user' | 'system'
  /** In lower case, white space as single spaces. */
  beginning: string
  /** A text that also occurs in the first characters, where the beginning alone could be a person's. */
  also?: string
  /** The beginning is the whole text, and the reply may have one token. */
  isQuotaTest?: true
}

export const asideForms: readonly AsideForm[] = [
  ...['<chat_history>', '### guidelines:', '### output:', '### instructions:'].map(also => ({
    source: 'Open WebUI, title, tags, follow-ups, queries, completion',
    of: 'user' as const,
    beginning: '### task: ',
    also,
  })),
  {
    source: 'Open WebUI, title',
    of: 'user',
    beginning: 'create a concise, 3-5 word title with an emoji',
  },
  { source: 'opencode, title', of: 'user', beginning: 'generate a title for this conversation:' },
  { source: 'opencode, title', of: 'system', beginning: 'you are a title generator.' },
  {
    source: 'Claude Code, subagent',
    of: 'system',
    beginning: 'x-anthropic-billing-header:',
    also: 'cc_is_subagent=true',
  },
  {
    source: 'Claude Code, title',
    of: 'user',
    beginning: 'please write a 5-10 word title for the following conversation',
  },
  {
    source: 'Claude Code, title',
    of: 'system',
    beginning: 'summarize this coding conversation in under 50 characters',
  },
  {
    source: 'Claude Code, topic',
    of: 'system',
    beginning: 'analyze if this message indicates a new conversation topic',
  },
  {
    source: 'Claude Code, title',
    of: 'system',
    beginning: 'generate a concise, sentence-case title',
  },
  {
    source: 'Claude Code, compaction',
    of: 'user',
    beginning: 'your task is to create a detailed summary of the conversation so far',
  },
  {
    source: 'Claude Code, compaction',
    of: 'user',
    beginning: 'critical: respond with text only. do not call any tools.',
  },
  { source: 'Claude Code, fetched page', of: 'user', beginning: 'web page content: ---' },
  { source: 'Claude Code, shell policy', of: 'user', beginning: '<policy_spec>' },
  { source: 'Claude Code, quota', of: 'user', beginning: 'quota', isQuotaTest: true },
  {
    source: 'Codex, compaction',
    of: 'user',
    beginning: 'you are performing a context checkpoint compaction.',
  },
  {
    source: 'Gemini CLI, router',
    of: 'system',
    beginning: 'you are a specialized task routing ai.',
  },
  {
    source: 'Gemini CLI, next speaker',
    of: 'user',
    beginning: 'analyze *only* the content and structure of your immediately preceding response',
  },
  {
    source: 'Gemini CLI, compression',
    of: 'user',
    beginning: 'first, reason in your scratchpad. then, generate the <state_snapshot>.',
  },
  {
    source: 'LibreChat, title',
    of: 'user',
    beginning: 'please generate a concise, 5-word-or-less title for the conversation',
  },
  {
    source: 'LibreChat, title',
    of: 'user',
    beginning: 'provide a concise, 5-word-or-less title for the conversation',
  },
  {
    source: 'NextChat, title',
    of: 'user',
    beginning: 'please generate a four to five word title summarizing our conversation',
  },
  {
    source: 'NextChat, summary',
    of: 'user',
    beginning:
      'summarize the discussion briefly in 200 words or less to use as a prompt for future context',
  },
  {
    source: 'Zed, title',
    of: 'user',
    beginning: 'generate a concise 3-7 word title for this conversation',
  },
  {
    source: 'Vercel chatbot, title',
    of: 'system',
    beginning: '- you will generate a short title based on the first message',
  },
  {
    source: 'Vercel chatbot, title',
    of: 'system',
    beginning: 'generate a short title based on the first message',
  },
  {
    source: 'LangChain, standalone question',
    of: 'user',
    beginning:
      'given the following conversation and a follow up question, rephrase the follow up question',
  },
  {
    source: 'LangChain, search query',
    of: 'user',
    beginning: 'given the above conversation, generate a search query',
  },
  {
    source: 'LangChain, summary',
    of: 'user',
    beginning: 'progressively summarize the lines of conversation provided',
  },
]

/** What of a call tells an aside from a conversation. */
export type CallShape = {
  /** The parts of the system prompt. */
  systemTexts: readonly string[]
  /** The parts of the user's messages since the last one of the model, as they were sent. */
  userTexts: readonly string[]
  maxTokens: number | undefined
}

/** Whether a call is a program's own: nothing is recalled for it and nothing of it is stored. */
export const isAsideCall = ({ systemTexts, userTexts, maxTokens }: CallShape): boolean =>
  hasAsidePrompt('system', systemTexts) || hasAsidePrompt('user', userTexts, maxTokens)

/** Whether a message of the user, or a system prompt, is that of an aside: one of its parts is. */
export const hasAsidePrompt = (
  of: AsideForm['of'],
  parts: readonly string[],
  maxTokens?: number,
): boolean => parts.some(part => isAsidePrompt(of, part, maxTokens))

/** Whether the last message of the user is the prompt of a program, or the system prompt that of an aside. */
export function isAsideConversation(messages: readonly Message[]): boolean {
  const user = messages.findLast(({ role }) => role === 'user')
  const system = messages.find(({ role }) => role === 'system' || role === 'developer')
  return (
    (system !== undefined && hasAsidePrompt('system', textParts(system.content))) ||
    (user !== undefined && hasAsidePrompt('user', textParts(user.content)))
  )
}

function isAsidePrompt(of: AsideForm['of'], text: string, maxTokens: number | undefined): boolean {
  if (text === '') return false
  const beginning = normalBeginning(text)
  if (beginning.startsWith(retrievalBeginning)) return false
  return asideForms.some(
    form =>
      form.of === of &&
      beginning.startsWith(form.beginning) &&
      (!form.isQuotaTest || (beginning === form.beginning && maxTokens === 1)) &&
      (form.also === undefined || beginning.includes(form.also)),
  )
}

/** Open WebUI's template around a person's question, which begins like those of its asides. */
const retrievalBeginning = '### task: respond to the user query'

const normalBeginning = (text: string): string =>
  text.slice(0, 4_000).trimStart().replaceAll(/\s+/g, ' ').toLowerCase()
