import {
  batchTier,
  cursor,
  entries,
  flag,
  inputSchema,
  limit,
  list,
  maxTokens,
  memoryId,
  messages,
  moment,
  oneOf,
  sessionId,
  text,
  tier,
  tiers,
  type ArgumentSchema,
} from '#api/mcp/arguments.ts'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { applicationScopes, type ApplicationScope } from '#shared/access/applications.postgres.ts'
import type { Permissions } from '#shared/access/key.ts'

/** What a client learns about a tool before it lets a model use it. */
type ToolHints = { readOnlyHint: boolean; destructiveHint?: boolean; idempotentHint?: boolean }

export type Tool = {
  name: string
  title: string
  /** What it does, and when a model is to use it. */
  description: string
  inputSchema: {
    type: 'object'
    properties: Record<string, ArgumentSchema>
    required?: string[]
  }
  annotations: ToolHints & { title: string; openWorldHint: false }
  endpoint: Endpoint
}

const readHints: ToolHints = { readOnlyHint: true }
const addHints: ToolHints = { readOnlyHint: false, destructiveHint: false }
const changeHints: ToolHints = { readOnlyHint: false, destructiveHint: true, idempotentHint: true }

type ToolRow = {
  /** The operation it performs. */
  operation: string
  title: string
  hints: ToolHints
  description: string
  arguments: Record<string, ArgumentSchema>
  required?: string[]
}

const toolTable: Record<string, ToolRow> = {
  search: {
    operation: 'search',
    title: 'Search memory',
    hints: readHints,
    description:
      'Finds what was said or stored before about something, by meaning and by words. Use it before you answer ' +
      'anything that may depend on earlier conversations: names, preferences, decisions, plans, facts about the ' +
      'user or their work. Ask in the words of the matter, one question at a time.',
    arguments: {
      query: text('What to look for, such as "the name of the staging database"'),
      limit: limit('Most memories to answer', 10),
      as_of: moment('What was known then; now when left out'),
      tiers,
      session_id: sessionId,
    },
    required: ['query'],
  },
  prepare: {
    operation: 'prepare',
    title: 'What matters to this conversation',
    hints: readHints,
    description:
      'Finds what matters to the latest turns of a conversation and answers it as one text. Use it once at the ' +
      'start of a task, in place of several searches.',
    arguments: { messages: messages('The latest turns, the question last'), session_id: sessionId },
    required: ['messages'],
  },
  date_search: {
    operation: 'dateSearch',
    title: 'Search a span of time',
    hints: readHints,
    description:
      'Reads what happened in a span of time, newest first; with a query what fits it best. Use it when a time is ' +
      'asked about: "last week", "in May", "what did we do yesterday".',
    arguments: {
      from: moment('Where the span begins'),
      to: moment('Where it ends; now when left out'),
      query: text('What to look for in it'),
      order: oneOf(['newest_first', 'oldest_first'], 'newest_first when left out'),
      max_tokens: maxTokens('Most text to answer', 4_000),
      session_id: sessionId,
    },
    required: ['from'],
  },
  list: {
    operation: 'list',
    title: 'List memories',
    hints: readHints,
    description:
      'Pages through memories by date, newest first, without ranking. Use it to look through what is there, or to ' +
      'find the id of a memory to edit or delete; to answer a question, search.',
    arguments: {
      search: text('Only texts with this piece in them'),
      from: moment('Not before'),
      to: moment('Not after'),
      tier,
      sort: oneOf(['date', 'importance'], 'date when left out'),
      limit: limit('Most memories of a page', 20),
      as_of: moment('What was known then; now when left out'),
      cursor,
    },
  },
  profile: {
    operation: 'profile',
    title: 'What the user has said of themselves',
    hints: readHints,
    description:
      'Answers what the user has said of themselves and for good, in their own words: standing instructions, names, ' +
      'work, places, dates, people, preferences, possessions and changes. Use it at the start of a conversation, or ' +
      'when asked "what do you know about me?".',
    arguments: {
      kinds: text(
        'Only these, separated by commas: instruction, name, role, place, date, person, preference, possession, change',
      ),
      current: { type: 'boolean', description: 'true: without what was replaced' },
      as_of: moment('What was known then; now when left out'),
      limit: limit('Most statements of a page', 50),
      cursor,
      session_id: sessionId,
    },
  },
  sessions: {
    operation: 'listSessions',
    title: 'List sessions',
    hints: readHints,
    description:
      'Lists the separate sessions of this memory, the latest first. Use it to find the id of a session that ' +
      'other tools take.',
    arguments: { limit: limit('Most sessions of a page', 20), cursor },
  },
  inspect: {
    operation: 'inspect',
    title: 'Where a reflection comes from',
    hints: readHints,
    description:
      'Shows the memories that a reflection was made of. Use it when the exact words behind a reflection (tier 2 ' +
      'or 3) matter.',
    arguments: { memory_id: memoryId },
    required: ['memory_id'],
  },
  trace: {
    operation: 'readTrace',
    title: 'What an answer was told',
    hints: readHints,
    description:
      'Shows which memories stood in the prompt of an answered model call, what each was found by, and where the ' +
      'text was put. Use it when asked why an answer said something, or what of the memory it knew.',
    arguments: { trace_id: text('The X-Memory-Trace of a call; the latest call when left out') },
  },
  stats: {
    operation: 'stats',
    title: 'How much is remembered',
    hints: readHints,
    description: 'How many memories there are, over which time. Use it only when that is asked.',
    arguments: {},
  },
  store: {
    operation: 'ingest',
    title: 'Remember something',
    hints: addHints,
    description:
      'Remembers a text, or turns of a conversation, for all later conversations. Use it when the user asks you to ' +
      'remember something, or states a lasting fact, preference or decision. Give `text` or `messages`. Do not ' +
      'store what memory told you, secrets, or what only matters now.',
    arguments: {
      text: text('What to remember, as a sentence that stands for itself'),
      messages: messages('In place of `text`: turns of the conversation, word for word'),
      session_id: sessionId,
      expires_at: moment('Only for what is to be forgotten: from when'),
    },
  },
  edit: {
    operation: 'edit',
    title: 'Correct a memory',
    hints: changeHints,
    description:
      'Replaces the text of one memory. Use it when the user corrects something that was remembered wrongly; find ' +
      'its id with search or list.',
    arguments: { memory_id: memoryId, text: text('The whole new text') },
    required: ['memory_id', 'text'],
  },
  delete: {
    operation: 'deleteIds',
    title: 'Forget memories for good',
    hints: changeHints,
    description:
      'Removes memories for good; they cannot be brought back. Use it only when the user asks to forget something; ' +
      'find the ids with search or list.',
    arguments: {
      ids: list({ type: 'string' }, 'Up to 500 ids of memories'),
      dry_run: flag('true removes nothing and tells what would go, and what would follow'),
    },
    required: ['ids'],
  },
  consolidate_checkout: {
    operation: 'checkout',
    title: 'Borrow memories to reflect on',
    hints: addHints,
    description:
      'Lends the oldest memories that no reflection covers, with instructions how to reflect on them. Use it only ' +
      'when the user asks to consolidate or tidy the memory; end with consolidate_commit.',
    arguments: { tier: batchTier, max_tokens: maxTokens('Most text to lend', 10_000) },
    required: ['tier'],
  },
  consolidate_commit: {
    operation: 'commit',
    title: 'Store reflections',
    hints: addHints,
    description:
      'Stores the reflections that you made of a batch. Use it within 15 minutes of consolidate_checkout.',
    arguments: { batch_id: text('`batch_id` of the batch'), entries },
    required: ['batch_id', 'entries'],
  },
}

/** The tools of the vault, by the endpoint that each calls. */
export const tools: Tool[] = Object.entries(toolTable).map(([name, row]) => ({
  name,
  title: row.title,
  description: row.description,
  inputSchema: inputSchema(row.arguments, row.required),
  annotations: { title: row.title, ...row.hints, openWorldHint: false },
  endpoint: contractDocument.endpoints[row.operation]!,
}))

export const toolNames: readonly string[] = Object.keys(toolTable)

/** The rights of an application that a tool needs: `delete` for what is gone for good, in place of `write`. */
export const scopesOf = ({ name, endpoint }: Tool): ApplicationScope[] =>
  applicationScopes.filter(scope =>
    name === 'delete' ? scope === 'delete' : (endpoint.needs as readonly string[]).includes(scope),
  )

/** Whether a key with these permissions, and a login with these scopes, may use a tool at all. */
export const mayUse = (tool: Tool, { permissions, scopes }: ToolRights): boolean =>
  (permissions.retrieve || !tool.endpoint.needs.includes('read')) &&
  (permissions.store || !tool.endpoint.needs.includes('write')) &&
  (scopes === undefined || scopesOf(tool).every(scope => scopes.includes(scope)))

export type ToolRights = {
  permissions: Permissions
  /** The scopes of a login; undefined for a key, which has none. */
  scopes?: readonly ApplicationScope[] | undefined
}
