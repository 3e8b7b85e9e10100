import { Router } from '@koa/router'
import { health } from '#api/routes/health.ts'
import { information } from '#api/routes/information.ts'
import { keys } from '#api/routes/keys.ts'
import { ingest } from '#api/routes/memory/ingest.ts'
import { prepare } from '#api/routes/memory/prepare.ts'
import { search } from '#api/routes/memory/search.ts'
import { stats } from '#api/routes/memory/stats.ts'
import { warmup } from '#api/routes/memory/warmup.ts'
import { providerKeys } from '#api/routes/account/provider-keys.ts'
import { usage } from '#api/routes/account/usage.ts'
import { operations } from '#api/routes/operations.ts'
import type { Backend } from '#shared/backend.ts'

/** Every route, in the order of the specification. */
export function routes(backend: Backend): Router {
  const router = new Router()
  for (const add of [
    information,
    health,
    keys,
    prepare,
    ingest,
    search,
    stats,
    warmup,
    operations,
    usage,
    providerKeys,
  ]) {
    add(router, backend)
  }
  return router
}
