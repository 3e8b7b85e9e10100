import type { Router } from '@koa/router'
import { InspectBody } from '#api/contract/contract.ts'
import { asksAnew } from '#api/edge/idempotency.ts'
import { presentInspected } from '#api/present/inspected.ts'
import { bodyOf, callerOf } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve } from '#shared/access/caller.ts'
import { inspectMemory } from '#shared/vault/read/inspect.ts'

/** Shows what a reflection was made of, and what was made of a memory. */
export function inspect(router: Router, backend: Backend): void {
  router.post('/v1/memory/inspect', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const { memory_id: id } = await bodyOf(ctx, InspectBody)
    if (asksAnew(ctx)) requireBalance(caller)

    const inspected = await inspectMemory(backend, caller, id)
    const tokens = inspected.sources.reduce((sum, source) => sum + source.tokens, 0)
    recordRead(backend, caller, { kind: 'inspect', tokens, session: null })

    ctx.body = presentInspected(inspected)
  })
}
