import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { reachableProviders } from '#shared/models/model-catalog.ts'
import { pickDefaultModel } from '#shared/models/default-chat-model.ts'

/**
 * The models that the account's provider keys, or the operator's, reach; also as a list that the clients
 * of providers page through.
 */
export function models(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/models',
    auth: memoryKey(),
    async handle({ account }, ctx) {
      const providers = reachableProviders(backend.config, await openProviderKeys(backend, account))
      const { lists, updatedAt } = await backend.catalog.modelLists(providers)
      ctx.body = {
        providers: lists,
        models: lists.flatMap(list => list.models.map(name => `${list.provider}/${name}`)),
        default: pickDefaultModel(lists),
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
    },
  })
}
