type Fields = Record<string, unknown>

/** The fields of these names that are neither absent nor null. */
function pick(from: unknown, ...names: string[]): Fields {
  const fields = (from ?? {}) as Fields
  return Object.fromEntries(
    names
      .filter(name => fields[name] !== undefined && fields[name] !== null)
      .map(name => [name, fields[name]]),
  )
}

/** A memory; `source` stands only with those of a session or a team. */
const memory = (row: Fields): Fields => ({
  ...pick(row, 'id', 'timestamp', 'role', 'content', 'relevance', 'tier', 'importance', 'author'),
  ...(row.source !== 'core' && pick(row, 'source')),
  ...pick(row, 'vault'),
})

const noMemories = { memories: [], note: 'Nothing that was remembered fits.' }

const memories = (rows: Fields[] | undefined): Fields =>
  rows?.length ? { memories: rows.map(memory) } : noMemories

const noTracedMemories = 'No memory stood in the prompt of this call.'

/** A block of a prompt; `turn` is the place of an earlier turn, and missing for the call itself. */
const tracedBlock = (block: Fields): Fields => ({
  ...pick(block, 'turn'),
  memories: (block.memories as Fields[]).map(line =>
    pick(line, 'memory_id', 'state', 'line', 'relevance', 'why'),
  ),
})

/** The cursor of the next page, if there is one. */
const nextPage = (body: Fields): Fields => (body.has_more ? pick(body, 'next_cursor') : {})

/**
 * What a model needs of an answer, by tool: without what was asked, counts, costs, and fields that say
 * nothing. A tool that is not here answers all.
 */
export const leanAnswers: Record<string, (body: Fields) => Fields> = {
  search: body => memories(body.memories as Fields[] | undefined),
  prepare: body =>
    body.context === null
      ? { context: null, note: noMemories.note }
      : {
          ...pick(body, 'context', 'memories_found'),
          memories: (body.memories as Fields[]).map(line => pick(line, 'memory_id', 'relevance')),
        },
  date_search: body => ({
    ...memories(body.memories as Fields[] | undefined),
    ...(body.truncated === true && pick(body, 'truncated', 'returned')),
  }),
  list: body => ({
    items: (body.items as Fields[]).map(item =>
      pick(item, 'memory_id', 'date', 'role', 'text', 'tier', 'importance'),
    ),
    ...nextPage(body),
  }),
  profile: body => ({
    items: (body.items as Fields[]).map(item => ({
      ...pick(item, 'kind', 'quote', 'memory_id', 'since', 'until', 'name', 'author'),
      ...(item.source !== 'core' && pick(item, 'source')),
    })),
    ...nextPage(body),
  }),
  sessions: body => ({
    items: (body.items as Fields[]).map(item => pick(item, 'session_id', 'memories', 'last_at')),
    ...nextPage(body),
  }),
  trace: body => ({
    ...pick(body, 'trace_id', 'created_at', 'session_id', 'model', 'status'),
    ...pick(body, 'as_of', 'confidence', 'abstained', 'revision'),
    ...(body.memories === 0 && { note: noTracedMemories }),
    blocks: (body.blocks as Fields[]).map(tracedBlock),
    splices: body.splices,
    left_out: body.left_out,
  }),
  stats: body => pick(body, 'memories', 'total_tokens', 'oldest', 'newest'),
  // Without the operation's id: no tool takes it, and models gave it to `delete`.
  store: body => pick(body, 'accepted', 'queued', 'message'),
}
