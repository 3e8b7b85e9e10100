import type { Router } from '@koa/router'
import { accountOf } from '#api/account.ts'
import { presentExported } from '#api/present/exported.ts'
import { answerLines } from '#api/lines.ts'
import { exportedAccount } from '#shared/account/export.ts'
import type { Backend } from '#shared/backend.ts'

/** Streams everything that is kept of an account as JSON lines. */
export function exportAccount(router: Router, backend: Backend): void {
  router.get('/v1/account/export', async ctx => {
    const account = await accountOf(ctx, backend)
    await answerLines(ctx, presented(exportedAccount(backend, account)))
  })
}

async function* presented(things: ReturnType<typeof exportedAccount>): AsyncGenerator<object> {
  for await (const thing of things) yield presentExported(thing)
}
