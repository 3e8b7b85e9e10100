import defaultModelsJson from '#shared/org/admin/default-models.json' with { type: 'json' }
import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { unknownProvider } from '#shared/core/refusals.ts'
import type { Admin } from '#shared/access/admin.ts'
import { normalizeName } from '#shared/org/base/normalize.ts'
import { ensureOrgKey } from '#shared/org/admin/member-keys.ts'
import { changePart, changePolicy, requireOrganization } from '#shared/org/base/policy-change.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import { findOperationStatus } from '#shared/vault/base/erasures.postgres.ts'
import { insertInstructions } from '#shared/org/base/org-policy.postgres.ts'
import {
  deleteOrg,
  findOrg,
  deleteOrgResponses,
  insertOrg,
  updateOrg,
  listOrgVaults,
  type OrgChange,
  type OrgRow,
  type OrgSettings,
} from '#shared/org/base/orgs.postgres.ts'
import {
  changePipeline,
  findPipelineStatus,
  wakePipeline,
  type PipelineSettings,
} from '#shared/org/base/pipeline-state.postgres.ts'
import { deleteMemberKeys } from '#shared/access/member-keys.postgres.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { listProviderKeys } from '#shared/access/provider-keys.postgres.ts'
import type { BuiltInName, Provider, Providers } from '#shared/core/provider-registry.ts'
import type { Config } from '#shared/core/config.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'

type DefaultModels = { extract: string; classify: string }

/** The models of each built-in provider when an admin names none. */
const defaultModels: Record<BuiltInName, DefaultModels> = defaultModelsJson

type NewOrg = OrgChange & { name: string; processorProvider?: string | undefined }

const takenName = 'You have an organization of this name already'

/**
 * Creates an organization with a shared vault and a key of its own. Repeated under the same operation it returns
 * the same.
 *
 * @param operation becomes its id
 * @throws Refusal `invalid` for a blank name, an unknown provider, or one without default models when none are
 *   named; `conflict` when the admin has one of that name.
 */
export async function createOrganization(
  backend: { postgres: Postgres; config: Config; seal: Seal },
  { account, email: actor }: Pick<Admin, 'account' | 'email'>,
  operation: string,
  input: NewOrg,
): Promise<{ org: OrgRow; key: string }> {
  return backend.postgres.transaction(async tx => {
    if (!(await findOrg(tx.query, account, operation))) {
      const settings = await withDefaultModels(tx.query, account, backend.config.providers, input)
      const vault = await insertVault(tx, account)
      const inserted = await insertOrg(tx, { ...settings, id: operation, account, vault })
      if (!inserted) throw new Refusal('conflict', takenName, 'Choose another name')
      await insertInstructions(tx, operation)
      const event = { account, actor, action: 'organization.created', subject: operation } as const
      await recordAccountEvent(tx, event)
    }
    const org = await requireOrganization(tx.query, { account }, operation)
    return { org, key: await ensureOrgKey(tx, backend, org, actor) }
  })
}

async function withDefaultModels(
  query: Query,
  account: string,
  providers: Providers,
  { name, processorProvider, extractModel, classifyModel }: NewOrg,
): Promise<OrgSettings> {
  const provider = processorProvider ?? (await firstProviderWithKey(query, account, providers))
  const usual = defaultModelsOf(requireProvider(providers, provider))
  const extract = extractModel ?? usual?.extract
  const classify = classifyModel ?? usual?.classify
  if (extract === undefined || classify === undefined) {
    throw refusal('invalid', 'modelsNeeded', { provider })
  }
  return {
    name: normalizeName(name, 'name'),
    processorProvider: provider,
    extractModel: extract,
    classifyModel: classify,
  }
}

/** Finds the first provider with default models that the account has a key for. */
async function firstProviderWithKey(
  query: Query,
  account: string,
  providers: Providers,
): Promise<string> {
  const keys = new Set((await listProviderKeys(query, account)).map(({ provider }) => provider))
  const usable = [...providers.values()].filter(provider => defaultModelsOf(provider))
  return usable.find(({ name }) => keys.has(name))?.name ?? 'openai'
}

/** The default models of a provider; of an operator's own, the first that its variable lists. */
export function defaultModelsOf({ name, models }: Provider): DefaultModels | undefined {
  if (isBuiltIn(name)) return defaultModels[name]
  return models?.[0] === undefined ? undefined : { extract: models[0], classify: models[0] }
}

const isBuiltIn = (name: string): name is BuiltInName => Object.hasOwn(defaultModels, name)

function requireProvider(providers: Providers, name: string): Provider {
  const provider = providers.get(name)
  if (provider) return provider
  throw unknownProvider(
    'invalid',
    'processor_provider names no provider of this service',
    providers.keys(),
  )
}

/**
 * Changes the given settings.
 *
 * @throws Refusal `missing`; `invalid` for a blank name or an unknown provider; `conflict` when the admin has
 *   another one of that name.
 */
export const changeOrganization = (
  backend: { postgres: Postgres; config: Config },
  admin: Pick<Admin, 'account' | 'email'>,
  id: string,
  { pipeline = {}, ...settings }: OrgChange & { pipeline?: PipelineSettings },
): Promise<OrgRow> =>
  changePart<{
    org: OrgRow
    pipeline: { paused: boolean; dailyTokenBudget: number | null }
  }>(
    backend,
    { admin, org: id, conflictMessage: takenName },
    {
      action: 'organization.changed',
      read: async query => ({
        org: await requireOrganization(query, admin, id),
        pipeline: await findPipelineStatus(query, id),
      }),
      async write(tx) {
        const { name, ...models } = settings
        if (models.processorProvider !== undefined)
          requireProvider(backend.config.providers, models.processorProvider)
        if (hasValue(settings))
          await updateOrg(tx, id, { ...models, name: name && normalizeName(name, 'name') })
        if (hasValue(pipeline)) await changePipeline(tx, id, pipeline)
        // A waiting turn may have waited for another model, too, but never for another name.
        if (hasValue(pipeline) || hasValue(models)) await wakePipeline(tx.query, id)
      },
      toRecorded: ({ org, pipeline: stored }) => ({
        name: org.name,
        processor_provider: org.processorProvider,
        extract_model: org.extractModel,
        classify_model: org.classifyModel,
        pipeline_paused: stored.paused,
        daily_token_budget: stored.dailyTokenBudget,
      }),
    },
  ).then(({ org }) => org)

const hasValue = (settings: object): boolean =>
  Object.values(settings).some(value => value !== undefined)

/**
 * Removes an organization with its policy, users and keys. The shared vault and the private ones are invisible at
 * once; jobs erase them. Repeated under the same operation it changes nothing.
 *
 * @throws Refusal `missing`.
 */
export async function removeOrganization(
  backend: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  { account, email, keyHash }: Admin,
  id: string,
  operation: string,
): Promise<void> {
  if (await findOperationStatus(backend.postgres.query, operation)) return
  const vaults = await changePolicy(backend, { admin: { account }, org: id }, async tx => {
    const vaults = await listOrgVaults(tx, id)
    await retireVaults(tx, backend, { operation, account, keyHash, vaults })
    await deleteOrgResponses(tx, id)
    const revoked = await deleteMemberKeys(tx, { org: id })
    await deleteOrg(tx, id)
    await announceRevokedKeys(tx, backend.queue, revoked, email)
    await recordAccountEvent(tx, {
      account,
      actor: email,
      action: 'organization.deleted',
      subject: id.toLowerCase(),
    })
    return vaults
  })
  for (const vault of vaults) backend.vaultIndexes.forget(vault)
}
