import type { Router } from '@koa/router'
import { accountOf, actedBy, ownerOf } from '#api/edge/account.ts'
import { actedByAdmin, actingAdmin } from '#api/edge/admin.ts'
import { PutAccountPolicyBody, PutOrgPolicyBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/edge/idempotency.ts'
import { presentAccountPolicy, presentPolicy } from '#api/present/policy.ts'
import { bodyOf } from '#api/edge/request.ts'
import { decideForAccount, policyOfAccount } from '#shared/accounts/policy.ts'
import type { Backend } from '#shared/backend.ts'
import { decideForOrg, policyOfOrg } from '#shared/org/redaction.ts'

/** What an account, or one of its organizations, keeps out of memory, and for how long it remembers. */
export function policy(router: Router, backend: Backend): void {
  const { query } = backend.postgres

  router.get('/v1/account/policy', async ctx => {
    ctx.body = presentAccountPolicy(await policyOfAccount(query, await accountOf(ctx, backend)))
  })

  router.put('/v1/account/policy', async ctx => {
    const owner = await ownerOf(ctx, backend)
    const { redaction, retention_days: retentionDays } = await bodyOf(ctx, PutAccountPolicyBody)
    const decision = { operation: operationOf(ctx), redaction, retentionDays }
    const follows = await decideForAccount(actedBy(backend, owner), owner.account, decision)
    ctx.body = {
      ...presentAccountPolicy(await policyOfAccount(query, owner.account)),
      ...(follows && { operation_id: decision.operation }),
    }
  })

  router.get('/v1/orgs/:orgId/policy', async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    ctx.body = presentPolicy(await policyOfOrg(backend, acting))
  })

  router.put('/v1/orgs/:orgId/policy', async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { redaction } = await bodyOf(ctx, PutOrgPolicyBody)
    await decideForOrg(actedByAdmin(ctx, backend), acting, redaction)
    ctx.body = presentPolicy(await policyOfOrg(backend, acting))
  })
}
