import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admin, anyMemoryKey, owner } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { providerKeyFromRequest } from '#api/proxy/credentials.ts'
import { forwardPassthrough } from '#api/proxy/pass-through.ts'
import type { ProviderRoute } from '#api/proxy/provider-routes.ts'
import { ClientAnswer } from '#api/proxy/relay.ts'
import {
  openProviderKeys,
  parseProviderKey,
  removeProviderKey,
  storeProviderKey,
} from '#shared/access/provider-key.ts'
import { pickDefaultModel, reachableProviders } from '#shared/models/model-catalog.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { unknownProvider } from '#shared/core/refusals.ts'
import { requireKeyForm } from '#shared/models/resolve-model.ts'
import { listProviderKeys, type ProviderKeyRow } from '#shared/access/provider-keys.postgres.ts'
import {
  providerNamePattern,
  type Provider,
  type Providers,
} from '#shared/core/provider-registry.ts'
import { isUuid } from '#shared/core/ids.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { isOperator } from '#shared/access/admin.ts'
import { defaultModelsOf } from '#shared/org/admin/organization.ts'
import { checkProcessor } from '#shared/org/pipeline/check-processor.ts'
import { findAccountSummary } from '#shared/accounts/account-summary.postgres.ts'
import { newAccountBilling, upsertAccount } from '#shared/access/accounts.postgres.ts'
import { issueAdminKey, revokeAdminKey } from '#shared/access/admin-keys.ts'
import { listAdminKeys, type AdminKey } from '#shared/access/admin-keys.postgres.ts'

/** A request with a provider key of its own asks that provider, in its own form. */
const listOfModels: ProviderRoute = { methods: ['GET'], path: '/v1/models', family: 'shared' }

/** The endpoints of `contract/account.md` but for usage: models, keys of providers and of admins. */
export function account(router: Router, backend: ApiBackend): void {
  // The models that provider keys of the account or the operator reach, also as a list of OpenAI's form.
  endpoint(router, backend, {
    route: 'GET /v1/models',
    auth: anyMemoryKey(),
    async handle({ account, caller }, ctx) {
      if (providerKeyFromRequest(ctx) !== undefined) {
        const answer = new ClientAnswer(ctx)
        return forwardPassthrough(ctx, backend, { route: listOfModels, caller, answer })
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

  endpoint(router, backend, {
    route: 'GET /v1/account',
    auth: owner(),
    async handle({ account }, ctx) {
      await backend.callLog.settled()
      const summary = await findAccountSummary(backend.postgres.query, account, backend.now())
      ctx.body = {
        email: summary.email,
        created_at: summary.createdAt.toISOString(),
        users: summary.users,
        users_new_7_days: summary.usersNew,
        users_active_7_days: summary.usersActive,
        calls_by_day: summary.calls.map(
          ({ day, given, nothing, withoutMemory, failed, other }) => ({
            day,
            given,
            nothing,
            without_memory: withoutMemory,
            failed,
            other,
          }),
        ),
      }
    },
  })

  // The account's own keys for model providers: listed masked, stored sealed.
  endpoint(router, backend, {
    route: 'GET /v1/account/provider-keys',
    auth: owner(),
    async handle({ account }, ctx) {
      const rows = await listProviderKeys(backend.postgres.query, account)
      const providers = [...backend.config.providers.values()]
      ctx.body = {
        provider_keys: rows.map(presentProviderKey),
        providers: providers.map(({ name }) => name),
        processors: providers.map(presentProcessor),
      }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/account/provider-keys/:provider/check',
    auth: owner(),
    async handle({ account, params: { provider }, body }, ctx) {
      requireProvider(backend.config.providers, provider)
      const apiKey = body.key === undefined ? undefined : parseProviderKey(body.key)
      if (apiKey !== undefined) requireKeyForm(provider, apiKey)
      await checkProcessor(backend, { account, provider, apiKey }, body.models)
      ctx.body = { provider, models: body.models }
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/account/provider-keys/:provider',
    auth: owner(),
    async current({ account, params: { provider } }) {
      const rows = await listProviderKeys(backend.postgres.query, account)
      return rows.map(presentProviderKey).find(row => row.provider === provider)
    },
    async handle({ account, actor, params: { provider }, body }, ctx) {
      requireProvider(backend.config.providers, provider)
      const sendable = parseProviderKey(body.key)
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

  // Admin credentials: admins issue and revoke those of their own email, the operator those of any.
  endpoint(router, backend, {
    route: 'POST /v1/account/admin-keys',
    auth: admin,
    async handle({ actor, admin, body, claim }, ctx) {
      const email = body.email?.toLowerCase() ?? admin.email
      if (email !== admin.email && !isOperator(backend.config, admin)) {
        throw refusal('forbidden', 'operatorIssuesOthers')
      }
      const key = mintKey('admin')
      const issued = await backend.postgres.transaction(async tx => {
        await upsertAccount(tx, email, newAccountBilling)
        const newKey = {
          id: claim.operation,
          hash: hashKey(backend.config.keyPepper, key),
          email,
          masked: maskKey(key),
          issuedBy: admin.email,
          expiresAt: new Date(Date.now() + body.expires_in_days * dayMs),
        }
        return issueAdminKey(tx, newKey, actor)
      })
      ctx.status = 201
      ctx.body = { key, ...presentAdminKey(issued) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/account/admin-keys',
    auth: admin,
    async handle({ admin }, ctx) {
      const email = isOperator(backend.config, admin) ? null : admin.email
      const rows = await listAdminKeys(backend.postgres.query, email)
      ctx.body = { admin_keys: rows.map(presentAdminKey) }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/account/admin-keys/:adminKeyId',
    auth: admin,
    async handle({ actor, admin, params }, ctx) {
      const { adminKeyId } = params
      const email = isOperator(backend.config, admin) ? null : admin.email
      const revoke = (id: string) =>
        backend.postgres.transaction(tx => revokeAdminKey(tx, { email, id }, actor))
      if (!isUuid(adminKeyId) || !(await revoke(adminKeyId))) {
        throw new Refusal('missing', 'There is no such admin credential')
      }
      ctx.body = { deleted: true, id: adminKeyId }
    },
  })
}

function requireProvider(providers: Providers, name: string): void {
  if (providers.has(name)) return
  throw unknownProvider('missing', 'No such provider', providers.keys())
}

const presentProviderKey = ({ provider, masked, createdAt, updatedAt }: ProviderKeyRow) => ({
  provider,
  masked_key: masked,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})

const presentProcessor = (provider: Provider) => {
  const models = defaultModelsOf(provider)
  return {
    provider: provider.name,
    needs_key: provider.selfHosted !== true,
    extract_model: models?.extract ?? null,
    classify_model: models?.classify ?? null,
  }
}

const dayMs = 24 * 3600 * 1000

const presentAdminKey = (key: AdminKey) => ({
  id: key.id,
  masked_key: key.masked,
  email: key.email,
  issued_by: key.issuedBy,
  created_at: key.createdAt.toISOString(),
  expires_at: key.expiresAt.toISOString(),
  revoked_at: key.revokedAt?.toISOString() ?? null,
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
})
