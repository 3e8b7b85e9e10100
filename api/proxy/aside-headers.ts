import type { Context } from 'koa'
import type { ProxyRequest } from '#api/proxy/dialects/dialect.ts'

/** A header by which a program marks a call that no person makes. */
type AsideHeader = {
  source: string
  header: string
  /** The values that mark one; any that is not blank when left out. */
  values?: RegExp
}

const asideHeaders: readonly AsideHeader[] = [
  { source: 'Claude Code, subagent', header: 'X-Claude-Code-Agent-Id' },
  {
    source: 'Claude Code, kind of request',
    header: 'X-Claude-Code-Request-Class',
    values: /^(?:subagent|workflow|compaction|auxiliary)$/i,
  },
  {
    source: 'Codex, subagent, review or compaction',
    header: 'X-OpenAI-Subagent',
    values: /^(?!(?:0|false)$)./i,
  },
  { source: 'Codex, memories', header: 'X-OpenAI-Memgen-Request', values: /^true$/i },
  { source: 'opencode, subagent', header: 'X-Parent-Session-Id' },
]

/** A summary that the conversation goes on from: it has the prompt of the conversation. */
const compaction = /^compact(?:ion)?$/i

/**
 * Returns how a program marks a call that it makes for itself. A model wrote the prompt of a subagent, and gets its
 * answer.
 */
export function asideOfHeaders(ctx: Context): ProxyRequest['aside'] {
  const marks = asideHeaders.flatMap(({ header, values = /./ }) => {
    const value = ctx.get(header).trim()
    return values.test(value) ? [value] : []
  })
  if (marks.length === 0) return undefined
  return marks.every(value => compaction.test(value)) ? 'inside' : 'apart'
}
