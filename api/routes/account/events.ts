import type { Router } from '@koa/router'
import { authenticateOwnerAccount } from '#api/edge/owner-auth.ts'
import { AccountEventsQuery } from '#api/contract/contract.ts'
import { presentAccountEvent } from '#api/present/account-event.ts'
import { parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { parseStart } from '#shared/core/dates.ts'
import { listAccountEvents } from '#shared/audit/account-events.postgres.ts'

/** What was done to an account, and by whom. */
export function accountEvents(router: Router, backend: Backend): void {
  const { postgres, cursors } = backend

  router.get('/v1/account/events', async ctx => {
    const account = await authenticateOwnerAccount(ctx, backend)
    const { action, since: from, limit, cursor } = parseQuery(ctx, AccountEventsQuery)
    const since = from === undefined ? undefined : parseStart(from)
    const cursorScope = ['account events', account, action ?? null, since ?? null]
    const before = cursor === undefined ? undefined : (cursors.read(cursor, cursorScope) as number)
    // One more than asked for tells whether there is a next page.
    const filter = { action, since, before, limit: limit + 1 }
    const rows = await listAccountEvents(postgres.query, account, filter)
    const page = rows.slice(0, limit)
    const last = rows.length > limit ? page.at(-1) : undefined
    ctx.body = {
      items: page.map(presentAccountEvent),
      has_more: last !== undefined,
      next_cursor: last ? cursors.write(last.position, cursorScope) : null,
    }
  })
}
