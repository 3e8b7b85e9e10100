import type { Router } from '@koa/router'
import { EditBody } from '#api/contract/contract.ts'
import { isFirstAttempt, operationId } from '#api/edge/idempotency.ts'
import { presentExpiry } from '#api/present/expiry.ts'
import { parseBody, authenticateRequest } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { parseExpiresAt } from '#shared/domain/expiry.ts'
import { editMemory } from '#shared/vault/edit/edit.ts'

/** Replaces the text of a memory in place. */
export function edit(router: Router, backend: Backend): void {
  router.post('/v1/memory/edit', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const { memory_id: id, text, expires_at: end } = await parseBody(ctx, EditBody)
    if (isFirstAttempt(ctx)) requireBalance(caller)
    const expiresAt = end === null ? null : parseExpiresAt(end, backend.now())

    const operation = operationId(ctx)
    const edited = await editMemory(backend, caller, { operation, id, text, expiresAt })

    ctx.body = {
      memory_id: edited.id,
      updated: true,
      date: new Date(edited.at).toISOString(),
      tier: edited.tier,
      importance: edited.importance ?? null,
      token_count: edited.tokens,
      ...presentExpiry(edited),
    }
  })
}
