import type { Router } from '@koa/router'
import { EditBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/edge/idempotency.ts'
import { presentEnd } from '#api/present/end.ts'
import { bodyOf, callerOf } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStore } from '#shared/access/caller.ts'
import { askedEnd } from '#shared/domain/expiry.ts'
import { editMemory } from '#shared/vault/edit/edit.ts'

/** Replaces the text of a memory in place. */
export function edit(router: Router, backend: Backend): void {
  router.post('/v1/memory/edit', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const { memory_id: id, text, expires_at: end } = await bodyOf(ctx, EditBody)
    if (asksAnew(ctx)) requireBalance(caller)
    const expiresAt = end === null ? null : askedEnd(end, backend.now())

    const operation = operationOf(ctx)
    const edited = await editMemory(backend, caller, { operation, id, text, expiresAt })

    ctx.body = {
      memory_id: edited.id,
      updated: true,
      date: new Date(edited.at).toISOString(),
      tier: edited.tier,
      importance: edited.importance ?? null,
      token_count: edited.tokens,
      ...presentEnd(edited),
    }
  })
}
