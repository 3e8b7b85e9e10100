import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import { ExportOrgQuery } from '#api/contract/contract.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { appendEndLine } from '#api/present/account-export.ts'
import { presentOrgExportLine } from '#api/present/org-export.ts'
import { embeddingModelForRequest, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { exportOrgItems } from '#shared/org/export-organization.ts'
import { recordAccountEvent } from '#shared/audit/account-events.postgres.ts'
import type { TypedLine } from '#api/present/typed-line.ts'

/** Streams everything that is kept of an organization as JSON lines. */
export function exportOrg(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/export', async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const { vectors } = parseQuery(ctx, ExportOrgQuery)
    const embedder = vectors
      ? await backend.embedders.get(embeddingModelForRequest(ctx))
      : undefined
    const event = { action: 'organization.exported', subject: org.id, actor: admin.email } as const
    await recordAccountEvent(backend.postgres.query, org.account, event)
    await sendNdjson(ctx, appendEndLine(presentLines(exportOrgItems(backend, org, embedder))))
  })
}

async function* presentLines(
  records: ReturnType<typeof exportOrgItems>,
): AsyncGenerator<TypedLine> {
  for await (const record of records) yield presentOrgExportLine(record)
}
