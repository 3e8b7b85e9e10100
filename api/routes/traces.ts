import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { presentRecalled, presentTrace, presentTraceSummary } from '#api/present/trace.ts'
import { replayCall } from '#api/proxy/replay-trace.ts'
import { requireRetrievePermission, type Caller } from '#shared/access/caller.ts'
import { parseStart } from '#shared/core/dates.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { readPage } from '#shared/core/page.ts'
import {
  findCallTrace,
  listCallTraces,
  type StoredCallTrace,
  type TraceScope,
} from '#shared/vault/read/traces/call-traces.postgres.ts'
import { readRecalledMemories, readTracedBlocks } from '#shared/vault/read/traces/read-trace.ts'

/** Lists, reads and replays the traces of a vault's model calls. */
export function traces(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/traces',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query: { limit, cursor } }, ctx) {
      const { query } = backend.postgres
      const scope = traceScope(caller)
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: ['GET /v1/traces', scope.vault, scope.epoch] },
        (before: string | undefined, count) =>
          isOff(caller)
            ? Promise.resolve([])
            : listCallTraces(query, scope, { before, limit: count }),
        row => row.id,
      )
      ctx.body = presentPage(page, presentTraceSummary)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/traces/memories',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query: { since, limit } }, ctx) {
      const range = { since: since === undefined ? Date.now() - dayMs : parseStart(since), limit }
      const recalled = isOff(caller)
        ? []
        : await readRecalledMemories(backend, caller, traceScope(caller), range)
      ctx.body = { items: recalled.map(one => presentRecalled(one, showsTexts(caller))) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/traces/:traceId',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, params }, ctx) {
      const stored = await requireTrace(backend, caller, params.traceId)
      const blocks = await readTracedBlocks(backend, caller, stored)
      ctx.body = presentTrace(stored, blocks, showsTexts(caller))
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/traces/:traceId/replay',
    auth: memoryKey(requireRetrievePermission),
    // It changes nothing, and a stored answer would outlive the memories in it, roles and the policy.
    claims: 'never',
    async handle({ caller, params, body }, ctx) {
      const stored = await requireTrace(backend, caller, params.traceId)
      if (!showsTexts(caller)) throw textsRefusal()
      const blocks = await readTracedBlocks(backend, caller, stored)
      const { bytes, ...replay } = await replayCall(stored.trace, blocks, Buffer.from(body.body))
      ctx.body = {
        trace_id: stored.id,
        body: bytes.toString(),
        bytes: bytes.length,
        ...replay,
      }
    },
  })
}

const dayMs = 24 * 3_600_000

const traceScope = ({ scope: { vault, epoch }, keyRow }: Caller): TraceScope => ({
  vault,
  epoch,
  days: keyRow.traces.days,
})

const isOff = ({ keyRow }: Caller): boolean => keyRow.traces.mode === 'off'

const showsTexts = ({ keyRow }: Caller): boolean => keyRow.traces.mode === 'texts'

const textsRefusal = (): Refusal =>
  new Refusal(
    'forbidden',
    'The policy of the account shows traces without texts',
    'The owner of the account changes it by PUT /v1/account/policy with {"traces": "texts"}',
  )

/** @throws Refusal `missing` for any trace that this vault does not have. */
async function requireTrace(
  { postgres }: Pick<ApiBackend, 'postgres'>,
  caller: Caller,
  id: string,
): Promise<StoredCallTrace> {
  const isReadable = isUuid(id) && !isOff(caller)
  const stored = isReadable
    ? await findCallTrace(postgres.query, traceScope(caller), id)
    : undefined
  if (stored) return stored
  throw new Refusal(
    'missing',
    'No such trace',
    'The id is the X-Memory-Trace of a call of this vault; GET /v1/traces lists the latest. ' +
      'A trace is kept for the trace_days of GET /v1/account/policy',
  )
}
