import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { providerKeyFromRequest } from '#api/proxy/credentials.ts'
import { forwardPassthrough } from '#api/proxy/pass-through.ts'
import type { ProviderRoute } from '#api/proxy/provider-routes.ts'
import { createRequestTimer } from '#api/proxy/response-headers.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { reachableProviders } from '#shared/models/model-catalog.ts'
import { pickDefaultModel } from '#shared/models/default-chat-model.ts'

/** A request with a provider key of its own asks that provider, in its own form. */
const listOfModels: ProviderRoute = { methods: ['GET'], path: '/v1/models', family: 'shared' }

/**
 * The models that the account's provider keys, or the operator's, reach; also as a list that the clients
 * of providers page through.
 */
export function models(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/models',
    auth: memoryKey(),
    async handle({ account, caller }, ctx) {
      if (providerKeyFromRequest(ctx) !== undefined) {
        const timer = createRequestTimer()
        return forwardPassthrough(ctx, backend, { route: listOfModels, caller, timer })
      }
      const providers = reachableProviders(backend.config, await openProviderKeys(backend, account))
      const { lists, updatedAt } = await backend.catalog.modelLists(providers)
      ctx.body = {
        providers: lists,
        models: lists.flatMap(list => list.models.map(name => `${list.provider}/${name}`)),
        default: pickDefaultModel(lists) ?? '',
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
