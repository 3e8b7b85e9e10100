import type { Router } from '@koa/router'
import { accountOf, actedBy, ownerOf } from '#api/edge/account.ts'
import { PutProviderKeyBody } from '#api/contract/contract.ts'
import { bodyOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isProvider, sendableProviderKey, storeProviderKey } from '#shared/access/provider-key.ts'
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
    const rows = await listProviderKeys(backend.postgres.query, await accountOf(ctx, backend))
    ctx.body = { provider_keys: rows.map(present) }
  })

  router.put(`${path}/:provider`, async ctx => {
    const owner = await ownerOf(ctx, backend)
    const provider = providerOf(ctx.params.provider)
    const { key } = await bodyOf(ctx, PutProviderKeyBody)
    const { query } = actedBy(backend, owner).postgres
    const sendable = sendableProviderKey(key)
    ctx.body = present(
      await storeProviderKey({ query, seal: backend.seal }, owner.account, provider, sendable),
    )
  })

  router.delete(`${path}/:provider`, async ctx => {
    const owner = await ownerOf(ctx, backend)
    const provider = providerOf(ctx.params.provider)
    const { query } = actedBy(backend, owner).postgres
    if (!(await deleteProviderKey(query, owner.account, provider))) {
      throw new Refusal('missing', `The account has no key for ${provider}`)
    }
    ctx.body = { deleted: true, id: provider }
  })
}

function providerOf(name: string | undefined): ProviderName {
  if (name !== undefined && isProvider(name)) return name
  throw new Refusal('missing', 'No such provider', `Providers: ${providerNames.join(', ')}`)
}

const present = ({ provider, masked, createdAt, updatedAt }: ProviderKeyRow) => ({
  provider,
  masked_key: masked,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})
