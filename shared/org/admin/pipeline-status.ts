import { listProviderKeys } from '#shared/access/provider-keys.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import {
  findPipelineStatus,
  wakePipeline,
  listGivenUpTurns,
  type PipelineStatus,
} from '#shared/org/base/pipeline-state.postgres.ts'
import type { Config } from '#shared/core/config.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type PipelineState = 'running' | 'paused' | 'over_budget' | 'faulty'

export type Pipeline = PipelineStatus & { state: PipelineState }

/** The pipeline of an organization: what an admin has set comes before a fault of the provider. */
export async function readPipeline(query: Query, org: string): Promise<Pipeline> {
  const status = await findPipelineStatus(query, org)
  return { ...status, state: stateOf(status) }
}

function stateOf({ paused, dailyTokenBudget, spentToday, fault }: PipelineStatus): PipelineState {
  if (paused) return 'paused'
  if (dailyTokenBudget !== null && spentToday >= dailyTokenBudget) return 'over_budget'
  return fault === null ? 'running' : 'faulty'
}

/** What an admin should know about the provider of an organization before a member says anything. */
export async function providerNotice(
  { postgres, config }: { postgres: Postgres; config: Pick<Config, 'providers'> },
  { account, processorProvider: provider }: Pick<OrgRow, 'account' | 'processorProvider'>,
): Promise<string | null> {
  if (config.providers.get(provider)?.selfHosted) return null
  const keys = await listProviderKeys(postgres.query, account)
  if (keys.some(key => key.provider === provider)) return null
  return `The account has no key for ${provider}: nothing is shared until PUT /v1/account/provider-keys/${provider} stores one`
}

/** Turns given back in one request; another request takes the next. */
const redriveMax = 1_000

/**
 * Gives the turns that were given up, oldest first, back to the pipeline, and wakes those that wait.
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
    redriven += await queue.redrive(
      name,
      rows.map(({ id }) => id),
    )
  }
  await wakePipeline(postgres.query, org)
  return redriven
}
