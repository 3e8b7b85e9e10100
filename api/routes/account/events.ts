import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { presentAccountEvent } from '#api/present/account-event.ts'
import { readPage } from '#shared/core/page.ts'
import { parseStart } from '#shared/core/dates.ts'
import { listAccountEvents } from '#shared/events/account-events.postgres.ts'

/** The events of an account: what changed it, and by whom. */
export function accountEvents(router: Router, backend: ApiBackend): void {
  const { postgres, cursors } = backend

  endpoint(router, backend, {
    route: 'GET /v1/account/events',
    auth: owner(),
    async handle({ account, query }, ctx) {
      const { action, since: from, limit, cursor } = query
      const since = from === undefined ? undefined : parseStart(from)
      const cursorScope = ['account events', account, action ?? null, since ?? null]
      const page = await readPage(
        cursors,
        { limit, cursor, bound: cursorScope },
        (before: number | undefined, count) =>
          listAccountEvents(postgres.query, account, { action, since, before, limit: count }),
        event => event.position,
      )
      ctx.body = presentPage(page, presentAccountEvent)
    },
  })
}
