import { listProviderKeys, type ProviderKeyRow } from '#shared/access/provider-keys.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import {
  findPipelineStatus,
  listPipelineFaults,
  wakePipeline,
  listGivenUpTurns,
  type PipelineStatus,
} from '#shared/org/base/pipeline-state.postgres.ts'
import type { Config } from '#shared/core/config.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type PipelineState = 'running' | 'paused' | 'over_budget' | 'faulty'

export type Pipeline = PipelineStatus & { state: PipelineState }

/** Reads the state of a pipeline; an admin's setting comes before a fault of the provider. */
export async function readPipeline(query: Query, org: string): Promise<Pipeline> {
  const status = await findPipelineStatus(query, org)
  return { ...status, state: stateOf(status) }
}

function stateOf({ paused, dailyTokenBudget, spentToday, fault }: PipelineStatus): PipelineState {
  if (paused) return 'paused'
  if (dailyTokenBudget !== null && spentToday >= dailyTokenBudget) return 'over_budget'
  return fault === null ? 'running' : 'faulty'
}

/** Warns an admin whose account has no key for the provider of the organization. */
export async function providerNotice(
  { postgres, config }: { postgres: Postgres; config: Pick<Config, 'providers'> },
  org: Pick<OrgRow, 'account' | 'processorProvider'>,
): Promise<string | null> {
  return missingKeyNotice(config, await listProviderKeys(postgres.query, org.account), org)
}

/**
 * Warns an admin of each organization whose pipeline cannot run: the account has no key for the provider, or the last
 * call of a model failed.
 *
 * @param orgs of one account
 * @returns the notices of those that have one, by id
 */
export async function pipelineNotices(
  { postgres, config }: { postgres: Postgres; config: Pick<Config, 'providers'> },
  account: string,
  orgs: readonly OrgRow[],
): Promise<ReadonlyMap<string, string>> {
  const [keys, faults] = await Promise.all([
    listProviderKeys(postgres.query, account),
    listPipelineFaults(postgres.query, account),
  ])
  const notices = orgs.flatMap(org => {
    const fault = faults.get(org.id)
    const waits = fault && `${fault}: what members say waits, and is tried again every minute`
    const notice = missingKeyNotice(config, keys, org) ?? waits
    return notice === undefined ? [] : [[org.id, notice] as const]
  })
  return new Map(notices)
}

function missingKeyNotice(
  { providers }: Pick<Config, 'providers'>,
  keys: readonly ProviderKeyRow[],
  { processorProvider: provider }: Pick<OrgRow, 'processorProvider'>,
): string | null {
  if (providers.get(provider)?.selfHosted) return null
  if (keys.some(key => key.provider === provider)) return null
  return `The account has no key for ${provider}: nothing is shared until one is stored (PUT /v1/account/provider-keys/${provider})`
}

/** The most turns of one request. */
const redriveMax = 1_000

/**
 * Gives turns that were given up back to the pipeline, oldest first, and wakes those that wait.
 *
 * @returns how many were given back.
 */
export async function redrivePipeline(
  { postgres, queue }: { postgres: Postgres; queue: Pick<Queue, 'redrive'> },
  org: string,
): Promise<number> {
  const givenUp = await listGivenUpTurns(postgres.query, org, redriveMax)
  let redriven = 0
  for (const [name, rows] of Map.groupBy(givenUp, ({ queue: name }) => name)) {
    const ids = rows.map(({ id }) => id)
    redriven += await queue.redrive(name, ids)
  }
  await wakePipeline(postgres.query, org)
  return redriven
}
