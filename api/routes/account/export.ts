import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { appendEndLine, presentAccountExportLine } from '#api/present/account-export.ts'
import { exportAccountItems } from '#shared/accounts/export-account.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { TypedLine } from '#api/present/typed-line.ts'

/** Streams everything that is stored of an account as JSON lines. */
export function exportAccount(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/account/export',
    auth: owner(),
    async handle({ account, actor }, ctx) {
      const event = { account, actor, action: 'account.exported', subject: 'account' } as const
      await recordAccountEvent(backend.postgres, event)
      await sendNdjson(ctx, appendEndLine(presentLines(exportAccountItems(backend, account))))
    },
  })
}

async function* presentLines(
  records: ReturnType<typeof exportAccountItems>,
): AsyncGenerator<TypedLine> {
  for await (const record of records) yield presentAccountExportLine(record)
}
