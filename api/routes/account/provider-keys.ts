import type { Router } from '@koa/router'
import { authenticateOwnerAccount, withActor, authenticateOwner } from '#api/edge/owner-auth.ts'
import { PutProviderKeyBody } from '#api/contract/contract.ts'
import { parseBody } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isProviderName, parseProviderKey, storeProviderKey } from '#shared/access/provider-key.ts'
import {
  deleteProviderKey,
  listProviderKeys,
  type ProviderKeyRow,
} from '#shared/access/provider-keys.postgres.ts'
import { providerNames, type ProviderName } from '#shared/core/provider-registry.ts'

/** The account's own keys for model providers: listed masked, stored sealed. */
export function providerKeys(router: Router, backend: Backend): void {
  const path = '/v1/account/provider-keys'

  router.get(path, async ctx => {
    const rows = await listProviderKeys(
      backend.postgres.query,
      await authenticateOwnerAccount(ctx, backend),
    )
    ctx.body = { provider_keys: rows.map(presentProviderKey) }
  })

  router.put(`${path}/:provider`, async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const provider = requireProvider(ctx.params.provider)
    const { key } = await parseBody(ctx, PutProviderKeyBody)
    const { query } = withActor(backend, owner).postgres
    const sendable = parseProviderKey(key)
    ctx.body = presentProviderKey(
      await storeProviderKey({ query, seal: backend.seal }, owner.account, provider, sendable),
    )
  })

  router.delete(`${path}/:provider`, async ctx => {
    const owner = await authenticateOwner(ctx, backend)
    const provider = requireProvider(ctx.params.provider)
    const { query } = withActor(backend, owner).postgres
    if (!(await deleteProviderKey(query, owner.account, provider))) {
      throw new Refusal('missing', `The account has no key for ${provider}`)
    }
    ctx.body = { deleted: true, id: provider }
  })
}

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
