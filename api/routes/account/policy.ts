import type { Router } from '@koa/router'
import { accountOf } from '#api/account.ts'
import { actingAdmin } from '#api/admin.ts'
import { PutAccountPolicyBody, PutOrgPolicyBody } from '#api/contract/contract.ts'
import { bodyOf } from '#api/request.ts'
import {
  decideForAccount,
  decideForOrg,
  policyOfAccount,
  policyOfOrg,
  type Policy,
} from '#shared/account/policy.ts'
import type { Backend } from '#shared/backend.ts'

/** What an account, or one of its organizations, keeps out of memory. */
export function policy(router: Router, backend: Backend): void {
  const { query } = backend.postgres

  router.get('/v1/account/policy', async ctx => {
    ctx.body = present(await policyOfAccount(query, await accountOf(ctx, backend)))
  })

  router.put('/v1/account/policy', async ctx => {
    const account = await accountOf(ctx, backend)
    const { redaction } = await bodyOf(ctx, PutAccountPolicyBody)
    await decideForAccount(query, account, redaction)
    ctx.body = present(await policyOfAccount(query, account))
  })

  router.get('/v1/orgs/:orgId/policy', async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    ctx.body = present(await policyOfOrg(backend, acting))
  })

  router.put('/v1/orgs/:orgId/policy', async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const { redaction } = await bodyOf(ctx, PutOrgPolicyBody)
    await decideForOrg(backend, acting, redaction)
    ctx.body = present(await policyOfOrg(backend, acting))
  })
}

const present = ({ redaction, from }: Policy) => ({ redaction, decided_by: from })
