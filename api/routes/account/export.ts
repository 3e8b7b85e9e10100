import type { Router } from '@koa/router'
import { ownerOf } from '#api/edge/account.ts'
import { answerLines } from '#api/edge/lines.ts'
import { closed, presentExported } from '#api/present/exported.ts'
import { exportedAccount } from '#shared/accounts/export.ts'
import type { Backend } from '#shared/backend.ts'
import { noteEvent } from '#shared/audit/account-events.postgres.ts'
import type { TypedLine } from '#api/present/typed-line.ts'

/** Streams everything that is kept of an account as JSON lines. */
export function exportAccount(router: Router, backend: Backend): void {
  router.get('/v1/account/export', async ctx => {
    const { account, actor } = await ownerOf(ctx, backend)
    const event = { action: 'account.exported', subject: 'account', actor } as const
    await noteEvent(backend.postgres.query, account, event)
    await answerLines(ctx, closed(presented(exportedAccount(backend, account))))
  })
}

async function* presented(things: ReturnType<typeof exportedAccount>): AsyncGenerator<TypedLine> {
  for await (const thing of things) yield presentExported(thing)
}
