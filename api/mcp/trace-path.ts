import { isUuid } from '#shared/core/ids.ts'

/** What the service answers to a tool. */
export type ToolResponse = { status: number; body: unknown }

const noTrace: ToolResponse = {
  status: 404,
  body: {
    error: 'There is no trace',
    hint:
      'A call to a model through this service makes one when it reads memory; it is kept for the trace_days ' +
      'of GET /v1/account/policy',
  },
}

const noTraceId: ToolResponse = {
  status: 400,
  body: {
    error: 'trace_id is not a UUID',
    hint: 'Give the X-Memory-Trace of a call, or leave it out for the latest call',
  },
}

/**
 * The path of a trace.
 *
 * @param id as a model gave it; the latest trace of the vault when it is missing or empty
 * @param get requests a path of the service
 * @returns the refusal where no trace can be named.
 */
export async function findTracePath(
  id: unknown,
  get: (path: string) => Promise<ToolResponse>,
): Promise<{ path: string } | { refusal: ToolResponse }> {
  if (id !== undefined && id !== '') {
    const isId = typeof id === 'string' && isUuid(id)
    return isId ? { path: `/v1/traces/${id}` } : { refusal: noTraceId }
  }
  const latest = await get('/v1/traces?limit=1')
  if (latest.status >= 400) return { refusal: latest }
  const { items } = latest.body as { items: { trace_id: string }[] }
  return items[0] ? { path: `/v1/traces/${items[0].trace_id}` } : { refusal: noTrace }
}
