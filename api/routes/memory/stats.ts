import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { Context } from 'koa'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireNothingExpired, type Caller } from '#shared/access/caller.ts'
import { findKeyAfterPurge } from '#shared/vault/base/expiry-protocol.ts'
import { hashKey, maskKey, parseKey } from '#shared/access/key.ts'
import { countDays } from '#shared/vault/read/lists/counts.mongo.ts'
import { sessionsToErase } from '#shared/vault/base/erasures.postgres.ts'

/** Days with memories that are answered at most: ten years without a gap. */
const daysMax = 3_660

/** How much a vault holds and since when: the caller's own, or that of another key of the account. */
export function stats(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/memory/stats',
    auth: memoryKey(requireNothingExpired),
    async handle({ caller, query }, ctx) {
      await sendStats(ctx, backend, caller, query.by_day)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/memory/:key/stats',
    auth: memoryKey(),
    async handle({ caller }, ctx) {
      const requestedKey = parseKey(String(ctx.params.key))
      const row = requestedKey
        ? await findKeyAfterPurge(backend, hashKey(backend.config.keyPepper, requestedKey.key))
        : undefined
      const isSameAccountKind =
        caller.kind === 'vault' ? row?.kind === 'vault' : row?.vault === caller.scope.vault
      if (!requestedKey || row?.account !== caller.account || !isSameAccountKind) {
        throw new Refusal('missing', 'No such key', 'Stats are served for keys of your own account')
      }
      const { vault, epoch, revision } = row
      await sendStats(ctx, backend, {
        maskedKey: maskKey(requestedKey.key),
        scope: { vault, epoch, revision },
      })
    },
  })
}

async function sendStats(
  ctx: Context,
  { memories, mongo, postgres }: Pick<Backend, 'memories' | 'mongo' | 'postgres'>,
  { maskedKey, scope }: Pick<Caller, 'maskedKey' | 'scope'>,
  byDay = false,
): Promise<void> {
  const cleared = await sessionsToErase(postgres.query, scope.vault)
  const [{ memories: count, tokens, oldest, newest }, days] = await Promise.all([
    memories.stats(scope, cleared),
    byDay ? countDays(mongo, scope, { clearedSessions: cleared, daysMax }) : undefined,
  ])
  ctx.body = {
    key: maskedKey,
    memories: count,
    total_tokens: tokens,
    oldest: oldest === null ? null : new Date(oldest).toISOString(),
    newest: newest === null ? null : new Date(newest).toISOString(),
    ...(days && { by_day: days }),
  }
}
