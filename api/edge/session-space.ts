import type { Context } from 'koa'
import { resolveSession } from '#api/edge/request.ts'
import { Refusal } from '#shared/core/errors.ts'

/** The session of a request that reads and stores memory. */
export type SessionSpace = {
  /** The session whose memories are used beside the core; null: the core alone. */
  session: string | null
  /** The id that the client gave, which names the conversation. */
  conversation: string | null
}

/**
 * The session of a request, and whether it has memories of its own. With `core` (`X-Memory-Sessions`, or the
 * query's `sessions`) the id names the conversation, and what is said lives in the core. This is the default
 * for ids that a program sends of itself: they would divide a person's memory by the program's windows.
 *
 * @throws Refusal `invalid` for another value, and what `resolveSession` throws.
 */
export function resolveSessionSpace(
  ctx: Context,
  {
    inBody,
    query = {},
  }: {
    inBody?: string | null | undefined
    query?: { session_id?: string | undefined; sessions?: string | undefined }
  } = {},
): SessionSpace {
  const conversation = resolveSession(ctx, inBody, query.session_id)
  const asked = new Set([parseSessionsHeader(ctx), query.sessions])
  const isNamed = Boolean(inBody || query.session_id)
  const isCore = asked.has('core') || (!asked.has('apart') && !isNamed && isProgramsOwnSession(ctx))
  return { session: isCore ? null : conversation, conversation }
}

function parseSessionsHeader(ctx: Context): string | undefined {
  const value = ctx.get('X-Memory-Sessions').trim().toLowerCase()
  if (value === '') return undefined
  if (value === 'core' || value === 'apart') return value
  throw new Refusal(
    'invalid',
    'X-Memory-Sessions must be one of core, apart',
    'Leave it out: sessions then have memories of their own',
  )
}

/** opencode sends an id of each of its sessions to every provider, for its own purposes. */
const isProgramsOwnSession = (ctx: Context): boolean =>
  /^ses_\w+$/.test(ctx.get('X-Session-ID')) &&
  (/\bopencode\b/i.test(ctx.get('User-Agent')) || ctx.get('X-Session-Affinity') !== '')
