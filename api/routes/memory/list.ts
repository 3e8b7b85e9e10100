import { parseMetadataFilterText } from '#shared/domain/metadata.ts'
import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { presentListRow } from '#api/present/list-row.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { parseAsOf, requireKnown } from '#shared/vault/read/search/as-of.ts'
import { listMemories } from '#shared/vault/read/lists/listing.mongo.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'

/** Pages through the core vault and its reflections. */
export function list(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/memory/list',
    auth: memoryKey(requireRetrievePermission, requireBalance),
    async handle({ caller, query }, ctx) {
      const from = query.from === undefined ? undefined : parseStart(query.from)
      const to = query.to === undefined ? undefined : parseExclusiveEnd(query.to)
      if (from !== undefined && to !== undefined && from >= to) {
        throw new Refusal('invalid', 'from lies after to', 'from is the earlier end of the span')
      }
      const asOf = parseAsOf(query.as_of)
      if (from !== undefined && asOf !== undefined) requireKnown(from, asOf)

      const { rows, next, counts } = await listMemories(backend, caller, {
        tier: query.tier,
        limit: query.limit,
        asOf,
        cursor: query.cursor,
        sort: query.sort,
        order: query.order,
        importance: query.min_importance,
        from,
        to,
        search: query.search,
        metadata: parseMetadataFilterText(query.metadata),
      })
      const tokens = rows.reduce((sum, row) => sum + row.tokens, 0)
      recordRead(backend, caller, { kind: 'list', tokens, session: null })

      ctx.body = {
        ...presentPage({ rows, next }, presentListRow),
        ...(counts && { tier_counts: { raw: counts[1], tier2: counts[2], tier3: counts[3] } }),
      }
    },
  })
}
