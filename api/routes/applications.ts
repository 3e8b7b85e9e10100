import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import {
  deleteApplication,
  listApplications,
  type ApplicationOwner,
} from '#shared/access/applications.postgres.ts'
import { presentApplication } from '#api/present/account.ts'
import { presentPage } from '#api/present/page.ts'
import { actorOf, isOwnerKey, type Caller } from '#shared/access/caller.ts'
import { Refusal } from '#shared/core/errors.ts'
import { readPage } from '#shared/core/page.ts'
import { isUuid } from '#shared/core/ids.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'

/** The clients of OAuth that a person has let into a vault. */
export function applications(router: Router, backend: ApiBackend): void {
  const { postgres } = backend

  endpoint(router, backend, {
    route: 'GET /v1/applications',
    auth: memoryKey(),
    async handle({ caller, query: { limit, cursor } }, ctx) {
      const owner = ownerOf(caller)
      const page = await readPage(
        backend.cursors,
        { limit, cursor, bound: ['GET /v1/applications', owner] },
        (after: string | undefined, count) =>
          listApplications(postgres.query, owner, { after, limit: count }),
        ({ id }) => id,
      )
      ctx.body = presentPage(page, presentApplication)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/applications/:applicationId',
    auth: memoryKey(),
    async handle({ caller, params: { applicationId: id } }, ctx) {
      await postgres.transaction(async tx => {
        const ended = isUuid(id) ? await deleteApplication(tx, ownerOf(caller), id) : undefined
        if (!ended) throw new Refusal('missing', 'There is no such application')
        await recordAccountEvent(tx, {
          account: caller.account,
          actor: actorOf(caller),
          action: 'application.disconnected',
          subject: ended.id,
          change: [{ name: ended.clientName, scopes: ended.scopes }, null],
        })
      })
      ctx.body = { deleted: true, id }
    },
  })
}

/** An owner key speaks for its account, but where it opens the vault of one user. */
const ownerOf = (caller: Caller): ApplicationOwner =>
  isOwnerKey(caller) && caller.ownerKey === null
    ? { account: caller.account }
    : { vault: caller.scope.vault }
