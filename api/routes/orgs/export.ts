import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import { ExportOrgQuery } from '#api/contract/contract.ts'
import { answerLines } from '#api/edge/lines.ts'
import { closed } from '#api/present/exported.ts'
import { presentOrgExported } from '#api/present/org-exported.ts'
import { embeddingsOf, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { exportedOrg } from '#shared/org/export.ts'
import { noteEvent } from '#shared/audit/account-events.postgres.ts'
import type { TypedLine } from '#api/present/typed-line.ts'

/** Streams everything that is kept of an organization as JSON lines. */
export function exportOrg(router: Router, backend: Backend): void {
  router.get('/v1/orgs/:orgId/export', async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const { vectors } = queryOf(ctx, ExportOrgQuery)
    const embedder = vectors ? await backend.embedders.get(embeddingsOf(ctx)) : undefined
    const event = { action: 'organization.exported', subject: org.id, actor: admin.email } as const
    await noteEvent(backend.postgres.query, org.account, event)
    await answerLines(ctx, closed(presented(exportedOrg(backend, org, embedder))))
  })
}

async function* presented(things: ReturnType<typeof exportedOrg>): AsyncGenerator<TypedLine> {
  for await (const thing of things) yield presentOrgExported(thing)
}
