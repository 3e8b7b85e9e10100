import type { Router } from '@koa/router'
import { authenticateOwner } from '#api/edge/owner-auth.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { appendEndLine, presentAccountExportLine } from '#api/present/account-export.ts'
import { exportAccountItems } from '#shared/accounts/export-account.ts'
import type { Backend } from '#shared/backend.ts'
import { recordAccountEvent } from '#shared/audit/account-events.postgres.ts'
import type { TypedLine } from '#api/present/typed-line.ts'

/** Streams everything that is kept of an account as JSON lines. */
export function exportAccount(router: Router, backend: Backend): void {
  router.get('/v1/account/export', async ctx => {
    const { account, actor } = await authenticateOwner(ctx, backend)
    const event = { action: 'account.exported', subject: 'account', actor } as const
    await recordAccountEvent(backend.postgres.query, account, event)
    await sendNdjson(ctx, appendEndLine(presentLines(exportAccountItems(backend, account))))
  })
}

async function* presentLines(
  records: ReturnType<typeof exportAccountItems>,
): AsyncGenerator<TypedLine> {
  for await (const record of records) yield presentAccountExportLine(record)
}
