import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentExpiry } from '#api/present/expiry.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { parseExpiresAt } from '#shared/domain/expiry.ts'
import { editMemory } from '#shared/vault/edit/edit.ts'

/** Replaces the text of a memory in place. */
export function edit(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/edit',
    auth: memoryKey(requireStorePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, claim }, ctx) {
      const { memory_id: id, text, expires_at: end } = body
      const expiresAt = end === null ? null : parseExpiresAt(end, backend.now())

      const { operation } = claim
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
    },
  })
}
