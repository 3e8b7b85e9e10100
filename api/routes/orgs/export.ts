import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { requestedEmbeddingModel } from '#api/edge/request.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { appendEndLine } from '#api/present/account-export.ts'
import { presentOrgExportLine } from '#api/present/org-export.ts'
import { exportOrgItems } from '#shared/org/trail/export-organization.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { TypedLine } from '#api/present/account.ts'

/** Streams everything that is stored of an organization as JSON lines. */
export function exportOrg(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/export',
    auth: loadedOrg,
    async handle({ admin, org, query }, ctx) {
      const { vectors } = query
      const embedder = vectors
        ? await backend.embedders.get(requestedEmbeddingModel(ctx))
        : undefined
      await recordAccountEvent(backend.postgres, {
        account: org.account,
        actor: admin.email,
        action: 'organization.exported',
        subject: org.id,
      })
      await sendNdjson(ctx, appendEndLine(presentLines(exportOrgItems(backend, org, embedder))))
    },
  })
}

async function* presentLines(
  records: ReturnType<typeof exportOrgItems>,
): AsyncGenerator<TypedLine> {
  for await (const record of records) yield presentOrgExportLine(record)
}
