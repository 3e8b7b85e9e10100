import type { Router } from '@koa/router'
import { actingAdmin } from '#api/edge/admin.ts'
import { PutInstructionsBody } from '#api/contract/contract.ts'
import { presentInstructions } from '#api/present/org.ts'
import { bodyOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeInstructions, instructionsOf } from '#shared/org/instructions.ts'

/** What an organization wants kept of what its members say. */
export function instructions(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/instructions'

  router.put(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await bodyOf(ctx, PutInstructionsBody)
    const written = await changeInstructions(backend, acting, {
      defaultOn: body.default_on,
      custom: body.custom,
      antiRules: body.anti_rules,
      execRules: body.exec_rules,
    })
    ctx.body = presentInstructions(written)
  })

  router.get(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    ctx.body = presentInstructions(await instructionsOf(backend, acting))
  })
}
