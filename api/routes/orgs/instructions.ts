import type { Router } from '@koa/router'
import { currentAdmin } from '#api/edge/admin-auth.ts'
import { PutInstructionsBody } from '#api/contract/contract.ts'
import { presentInstructions } from '#api/present/org.ts'
import { parseBody } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeInstructions, getInstructions } from '#shared/org/instructions.ts'

/** What an organization wants kept of what its members say. */
export function instructions(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/instructions'

  router.put(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await parseBody(ctx, PutInstructionsBody)
    const saved = await changeInstructions(backend, orgAdmin, {
      defaultOn: body.default_on,
      custom: body.custom,
      antiRules: body.anti_rules,
      execRules: body.exec_rules,
    })
    ctx.body = presentInstructions(saved)
  })

  router.get(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    ctx.body = presentInstructions(await getInstructions(backend, orgAdmin))
  })
}
