import type { Router } from '@koa/router'
import { EditBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/idempotency.ts'
import { bodyOf, callerOf } from '#api/request.ts'
import { requireBalance } from '#shared/account/standing.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStore } from '#shared/key/caller.ts'
import { editMemory } from '#shared/memory/edit.ts'

/** Replaces the text of a memory in place. */
export function edit(router: Router, backend: Backend): void {
  router.post('/v1/memory/edit', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    requireBalance(caller)
    const { memory_id: id, text } = await bodyOf(ctx, EditBody)

    const edited = await editMemory(backend, caller, { operation: operationOf(ctx), id, text })

    ctx.body = {
      memory_id: edited.id,
      updated: true,
      date: new Date(edited.at).toISOString(),
      tier: edited.tier,
      importance: edited.importance ?? null,
      token_count: edited.tokens,
    }
  })
}
