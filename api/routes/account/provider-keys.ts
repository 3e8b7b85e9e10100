import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  parseProviderKey,
  removeProviderKey,
  storeProviderKey,
} from '#shared/access/provider-key.ts'
import { requireKeyForm } from '#shared/models/provider-key-form.ts'
import { listProviderKeys, type ProviderKeyRow } from '#shared/access/provider-keys.postgres.ts'
import { providerNamePattern, type Providers } from '#shared/core/provider-registry.ts'

/** The account's own keys for model providers: listed masked, stored sealed. */
export function providerKeys(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/account/provider-keys',
    auth: owner(),
    async handle({ account }, ctx) {
      const rows = await listProviderKeys(backend.postgres.query, account)
      const providers = [...backend.config.providers.keys()]
      ctx.body = { provider_keys: rows.map(presentProviderKey), providers }
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/account/provider-keys/:provider',
    auth: owner(),
    async handle({ account, actor, params: { provider }, body }, ctx) {
      requireProvider(backend.config.providers, provider)
      const { key } = body
      const sendable = parseProviderKey(key)
      requireKeyForm(provider, sendable)
      const keyOwner = { account, actor }
      const row = await backend.postgres.transaction(({ query }) =>
        storeProviderKey({ query, seal: backend.seal }, keyOwner, provider, sendable),
      )
      ctx.body = presentProviderKey(row)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/account/provider-keys/:provider',
    auth: owner(),
    async handle({ account, actor, params: { provider }, claim }, ctx) {
      // A key may be left of a provider that is not set up any more.
      if (!providerNamePattern.test(provider)) requireProvider(backend.config.providers, provider)
      const answer = { deleted: true, id: provider }
      await backend.postgres.transaction(async tx => {
        if (!(await removeProviderKey(tx, { account, actor }, provider)))
          throw new Refusal('missing', `The account has no key for ${provider}`)
        await claim.storeInTransaction(tx, { status: 200, body: answer })
      })
      ctx.body = answer
    },
  })
}

function requireProvider(providers: Providers, name: string): void {
  if (providers.has(name)) return
  throw new Refusal('missing', 'No such provider', `Providers: ${[...providers.keys()].join(', ')}`)
}

const presentProviderKey = ({ provider, masked, createdAt, updatedAt }: ProviderKeyRow) => ({
  provider,
  masked_key: masked,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})
