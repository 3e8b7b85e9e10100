import type { Router } from '@koa/router'
import { callerOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { providerKeysOf } from '#shared/access/provider-key.ts'
import { reachable } from '#shared/models/catalog.ts'
import { defaultModelOf } from '#shared/models/default-chat-model.ts'

/**
 * The models that the account's provider keys, or the operator's, reach; also as a list that the clients
 * of providers page through.
 */
export function models(router: Router, backend: Backend): void {
  router.get('/v1/models', async ctx => {
    const { account } = await callerOf(ctx, backend)
    const providers = reachable(backend.config, await providerKeysOf(backend, account))
    const { lists, updatedAt } = await backend.catalog.modelsOf(providers)
    ctx.body = {
      providers: lists,
      models: lists.flatMap(list => list.models.map(name => `${list.provider}/${name}`)),
      default: defaultModelOf(lists),
      catalog_updated: new Date(updatedAt).toISOString(),
      object: 'list',
      data: lists.flatMap(({ provider, models }) =>
        models.map(name => ({
          id: `${provider}/${name}`,
          object: 'model',
          created: 0,
          owned_by: provider,
        })),
      ),
    }
  })
}
