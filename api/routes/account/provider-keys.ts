import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner, withLookup } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  isProviderName,
  parseProviderKey,
  removeProviderKey,
  storeProviderKey,
} from '#shared/access/provider-key.ts'
import { requireKeyForm } from '#shared/models/provider-key-form.ts'
import { listProviderKeys, type ProviderKeyRow } from '#shared/access/provider-keys.postgres.ts'
import { providerNames, type ProviderName } from '#shared/core/provider-registry.ts'

/** The account's own keys for model providers: listed masked, stored sealed. */
export function providerKeys(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/account/provider-keys',
    auth: owner(),
    async handle({ account }, ctx) {
      const rows = await listProviderKeys(backend.postgres.query, account)
      ctx.body = { provider_keys: rows.map(presentProviderKey) }
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/account/provider-keys/:provider',
    auth: providerOfOwner,
    async handle({ account, actor, provider, body }, ctx) {
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
    auth: providerOfOwner,
    async handle({ account, actor, provider, claim }, ctx) {
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

const providerOfOwner = withLookup(owner(), (_, ctx) => ({
  provider: requireProvider(ctx.params.provider),
}))

function requireProvider(name: string | undefined): ProviderName {
  if (name !== undefined && isProviderName(name)) return name
  throw new Refusal('missing', 'No such provider', `Providers: ${providerNames.join(', ')}`)
}

const presentProviderKey = ({ provider, masked, createdAt, updatedAt }: ProviderKeyRow) => ({
  provider,
  masked_key: masked,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})
