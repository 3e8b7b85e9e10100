import type { Router } from '@koa/router'
import { authenticateOwnerAccount, withActor, authenticateOwner } from '#api/edge/owner-auth.ts'
import { withAdminActor, currentAdmin } from '#api/edge/admin-auth.ts'
import { PutAccountPolicyBody, PutOrgPolicyBody } from '#api/contract/contract.ts'
import { operationId } from '#api/edge/idempotency.ts'
import { presentAccountPolicy, presentPolicy } from '#api/present/policy.ts'
import { parseBody } from '#api/edge/request.ts'
import { changeAccountPolicy, readAccountPolicy } from '#shared/accounts/policy.ts'
import type { Backend } from '#shared/backend.ts'
import { changeOrgPolicy, readOrgPolicy } from '#shared/org/redaction.ts'

/** What an account, or one of its organizations, keeps out of memory, and for how long it remembers. */
export function policy(router: Router, backend: Backend): void {
  const { query } = backend.postgres

  router.get('/v1/account/policy', async ctx => {
    ctx.body = presentAccountPolicy(
      await readAccountPolicy(query, await authenticateOwnerAccount(ctx, backend)),
    )
  })

  router.put('/v1/account/policy', async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const { redaction, retention_days: retentionDays } = await parseBody(ctx, PutAccountPolicyBody)
    const decision = { operation: operationId(ctx), redaction, retentionDays }
    const hasFollowUp = await changeAccountPolicy(
      withActor(backend, owner),
      owner.account,
      decision,
    )
    ctx.body = {
      ...presentAccountPolicy(await readAccountPolicy(query, owner.account)),
      ...(hasFollowUp && { operation_id: decision.operation }),
    }
  })

  router.get('/v1/orgs/:orgId/policy', async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    ctx.body = presentPolicy(await readOrgPolicy(backend, orgAdmin))
  })

  router.put('/v1/orgs/:orgId/policy', async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { redaction } = await parseBody(ctx, PutOrgPolicyBody)
    await changeOrgPolicy(withAdminActor(ctx, backend), orgAdmin, redaction)
    ctx.body = presentPolicy(await readOrgPolicy(backend, orgAdmin))
  })
}
