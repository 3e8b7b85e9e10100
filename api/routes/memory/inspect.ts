import type { Router } from '@koa/router'
import { InspectBody } from '#api/contract/contract.ts'
import { isFirstAttempt } from '#api/edge/idempotency.ts'
import { presentInspection } from '#api/present/inspection.ts'
import { parseBody, authenticateRequest } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { inspectMemory } from '#shared/vault/read/inspect.ts'

/** Shows what a reflection was made of, and what was made of a memory. */
export function inspect(router: Router, backend: Backend): void {
  router.post('/v1/memory/inspect', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const { memory_id: id } = await parseBody(ctx, InspectBody)
    if (isFirstAttempt(ctx)) requireBalance(caller)

    const inspected = await inspectMemory(backend, caller, id)
    const tokens = inspected.sources.reduce((sum, source) => sum + source.tokens, 0)
    recordRead(backend, caller, { kind: 'inspect', tokens, session: null })

    ctx.body = presentInspection(inspected)
  })
}
