import type { Router } from '@koa/router'
import { ListQuery } from '#api/contract/contract.ts'
import { presentListed } from '#api/present/listed.ts'
import { callerOf, queryOf } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireRetrieve } from '#shared/access/caller.ts'
import { listMemories } from '#shared/vault/read/listing.ts'
import { momentAfter, momentFrom } from '#shared/core/dates.ts'

/** Pages through the core vault and its reflections. */
export function list(router: Router, backend: Backend): void {
  router.get('/v1/memory/list', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    requireBalance(caller)
    const asked = queryOf(ctx, ListQuery)
    const from = asked.from === undefined ? undefined : momentFrom(asked.from)
    const to = asked.to === undefined ? undefined : momentAfter(asked.to)
    if (from !== undefined && to !== undefined && from >= to) {
      throw new Refusal('invalid', 'from lies after to', 'from is the earlier end of the span')
    }

    const { rows, next, counts } = await listMemories(backend, caller, {
      tier: asked.tier,
      limit: asked.limit,
      cursor: asked.cursor,
      sort: asked.sort,
      order: asked.order,
      importance: asked.min_importance,
      from,
      to,
      search: asked.search,
    })
    const tokens = rows.reduce((sum, row) => sum + row.tokens, 0)
    recordRead(backend, caller, { kind: 'list', tokens, session: null })

    ctx.body = {
      items: rows.map(presentListed),
      has_more: next !== null,
      next_cursor: next,
      ...(counts && { tier_counts: { raw: counts[1], tier2: counts[2], tier3: counts[3] } }),
    }
  })
}
