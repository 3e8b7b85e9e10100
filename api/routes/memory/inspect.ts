import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentInspection } from '#api/present/inspection.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { inspectMemory } from '#shared/vault/read/lists/inspect.mongo.ts'

/** Lists the sources of a reflection, and the reflections that cover a memory. */
export function inspect(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/inspect',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body }, ctx) {
      const { memory_id: id } = body

      const inspected = await inspectMemory(backend, caller, id)
      const tokens = inspected.sources.reduce((sum, source) => sum + source.tokens, 0)
      recordRead(backend, caller, { kind: 'inspect', tokens, session: null })

      ctx.body = presentInspection(inspected)
    },
  })
}
