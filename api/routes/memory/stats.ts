import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { callerOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireNothingOver, type Caller } from '#shared/access/caller.ts'
import { currentKey } from '#shared/vault/base/current-key.ts'
import { hashOfKey, maskKey, parseKey } from '#shared/access/key.ts'
import { sessionsToErase } from '#shared/vault/base/erasures.postgres.ts'

/** How much a vault holds and since when: the caller's own, or that of another key of the account. */
export function stats(router: Router, backend: Backend): void {
  router.get('/v1/memory/stats', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireNothingOver(caller)
    await answerStats(ctx, backend, caller)
  })

  router.get('/v1/memory/:key/stats', async ctx => {
    const caller = await callerOf(ctx, backend)
    const asked = parseKey(String(ctx.params.key))
    const row = asked
      ? await currentKey(backend, hashOfKey(backend.config.keyPepper, asked.key))
      : undefined
    const own = caller.kind === 'vault' ? row?.kind === 'vault' : row?.vault === caller.scope.vault
    if (!asked || row?.account !== caller.account || !own) {
      throw new Refusal('missing', 'No such key', 'Stats are served for keys of your own account')
    }
    const { vault, epoch, revision } = row
    await answerStats(ctx, backend, {
      maskedKey: maskKey(asked.key),
      scope: { vault, epoch, revision },
    })
  })
}

async function answerStats(
  ctx: Context,
  { memories, postgres }: Pick<Backend, 'memories' | 'postgres'>,
  { maskedKey, scope }: Pick<Caller, 'maskedKey' | 'scope'>,
): Promise<void> {
  const {
    memories: count,
    tokens,
    oldest,
    newest,
  } = await memories.stats(scope, await sessionsToErase(postgres.query, scope.vault))
  ctx.body = {
    key: maskedKey,
    memories: count,
    total_tokens: tokens,
    oldest: oldest === null ? null : new Date(oldest).toISOString(),
    newest: newest === null ? null : new Date(newest).toISOString(),
  }
}
