import type { Router } from '@koa/router'
import { ListQuery } from '#api/contract/contract.ts'
import { presentListRow } from '#api/present/list-row.ts'
import { authenticateRequest, parseQuery } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { listMemories } from '#shared/vault/read/listing.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'

/** Pages through the core vault and its reflections. */
export function list(router: Router, backend: Backend): void {
  router.get('/v1/memory/list', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    requireBalance(caller)
    const params = parseQuery(ctx, ListQuery)
    const from = params.from === undefined ? undefined : parseStart(params.from)
    const to = params.to === undefined ? undefined : parseExclusiveEnd(params.to)
    if (from !== undefined && to !== undefined && from >= to) {
      throw new Refusal('invalid', 'from lies after to', 'from is the earlier end of the span')
    }

    const { rows, next, counts } = await listMemories(backend, caller, {
      tier: params.tier,
      limit: params.limit,
      cursor: params.cursor,
      sort: params.sort,
      order: params.order,
      importance: params.min_importance,
      from,
      to,
      search: params.search,
    })
    const tokens = rows.reduce((sum, row) => sum + row.tokens, 0)
    recordRead(backend, caller, { kind: 'list', tokens, session: null })

    ctx.body = {
      items: rows.map(presentListRow),
      has_more: next !== null,
      next_cursor: next,
      ...(counts && { tier_counts: { raw: counts[1], tier2: counts[2], tier3: counts[3] } }),
    }
  })
}
