import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { presentRecalled, presentTrace, presentTraceSummary } from '#api/present/trace.ts'
import { requireOwner, requireRetrievePermission, type Caller } from '#shared/access/caller.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'
import { refusal } from '#shared/core/refusal.ts'
import { isUuid } from '#shared/core/ids.ts'
import { readPage } from '#shared/core/page.ts'
import {
  findCallTrace,
  listCallTraces,
  type AccountTraceScope,
  type StoredCallTrace,
  type TraceScope,
} from '#shared/vault/read/traces/call-traces.postgres.ts'
import {
  readRecalledMemories,
  readTracedBlocks,
  readWords,
  type WordedTrace,
} from '#shared/vault/read/traces/read-trace.ts'

/** Lists and reads the call log. */
export function traces(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/traces',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query: { limit, cursor, since, until, account, user, ...named } }, ctx) {
      const scope = { ...traceScope(caller), ...accountScope(caller, { account, user }) }
      const filter = {
        ...named,
        since: since === undefined ? undefined : parseStart(since),
        until: until === undefined ? undefined : parseExclusiveEnd(until),
      }
      await backend.callLog.settled()
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: ['GET /v1/traces', scope, caller.scope.epoch, filter] },
        (before: string | undefined, count) =>
          isOff(caller)
            ? Promise.resolve([])
            : listCallTraces(backend.postgres.query, scope, { before, limit: count }, filter),
        row => row.id,
      )
      const rows = await readShownWords(backend, caller, page.rows, 'list')
      const shown = { texts: showsTexts(caller), prices: backend.prices }
      ctx.body = presentPage({ ...page, rows }, row => presentTraceSummary(row, shown))
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/traces/memories',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query: { since, limit } }, ctx) {
      const range = { since: since === undefined ? Date.now() - dayMs : parseStart(since), limit }
      await backend.callLog.settled()
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
      const [blocks, [worded]] = await Promise.all([
        readTracedBlocks(backend, caller, stored),
        readShownWords(backend, caller, [stored], 'whole'),
      ])
      const { prices } = backend
      ctx.body = presentTrace(worded!, blocks, { texts: showsTexts(caller), prices })
    },
  })
}

const dayMs = 24 * 3_600_000

const traceScope = ({ scope: { vault }, keyRow }: Caller): TraceScope => ({
  vault,
  days: keyRow.traces.days,
})

/**
 * The vaults of the account that a request asks for; undefined where it asks for its own alone.
 *
 * @throws Refusal `forbidden` for a key that does not act for its account.
 */
function accountScope(
  caller: Caller,
  { account, user }: { account: boolean; user: string | undefined },
): Pick<AccountTraceScope, 'account' | 'user'> | undefined {
  if (!account && user === undefined) return undefined
  requireOwner(caller)
  return { account: caller.account, user }
}

/** Traces with their words, where the policy has texts. */
const readShownWords = (
  backend: ApiBackend,
  caller: Caller,
  traces: readonly StoredCallTrace[],
  extent: Parameters<typeof readWords>[2],
): Promise<WordedTrace[]> | WordedTrace[] =>
  showsTexts(caller)
    ? readWords(backend, traces, extent)
    : traces.map(trace => ({ ...trace, question: null, answer: null }))

const isOff = ({ keyRow }: Caller): boolean => keyRow.traces.mode === 'off'

const showsTexts = ({ keyRow }: Caller): boolean => keyRow.traces.mode === 'texts'

/** @throws Refusal `missing` for any trace that this vault does not have. */
async function requireTrace(
  { postgres, callLog }: Pick<ApiBackend, 'postgres' | 'callLog'>,
  caller: Caller,
  id: string,
): Promise<StoredCallTrace> {
  await callLog.settled()
  const isReadable = isUuid(id) && !isOff(caller)
  const stored = isReadable
    ? await findCallTrace(postgres.query, traceScope(caller), id)
    : undefined
  if (stored) return stored
  throw refusal('missing', 'noSuchTrace')
}
