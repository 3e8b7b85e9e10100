import type { Test } from 'tap'
import { storeProviderKey } from '#shared/access/provider-key.ts'
import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/core/ids.ts'
import {
  sharedMemoryFilter,
  sharedMemoryFromDocument,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { findTurn, type TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import { extractFacts } from '#shared/org/pipeline/extract-facts.ts'
import { reconcileFacts } from '#shared/org/pipeline/reconcile-facts.ts'
import { tagFacts } from '#shared/org/pipeline/tag-facts.ts'
import type { OrgExtractJob } from '#shared/domain/job-payloads.ts'
import { createTestClient, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam, type Team } from '#test/support/start/team.ts'
import { startTeamModel, type TeamModel } from '#test/support/doubles/team-model.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** An organization whose pipeline runs: it has a provider key, tags, and a member with every role. */
export type WorkingTeam = Team & {
  /** The key of the member `ada@example.com`, who may see everything. */
  key: string
  admin: ReturnType<typeof createTestClient>
  /** Ingests one exchange. @returns its turn. */
  say(text: string, options?: { as?: string; timestamp?: number }): Promise<string>
  /** As `say`, once its passes are done. */
  share(text: string, options?: { as?: string; timestamp?: number }): Promise<TurnRow>
  memories(): Promise<SharedMemory[]>
}

export type TeamService = {
  backend: Backend
  base: string
  model: TeamModel
  newTeam(labels?: readonly string[]): Promise<WorkingTeam>
  finished(turn: string): Promise<TurnRow>
}

/** An API and workers over real stores, with a model by rules as every provider. */
export async function startTeamService(
  t: Test,
  { working = true, ...options }: { working?: boolean; env?: Record<string, string> } = {},
): Promise<TeamService> {
  const model = await startTeamModel(t)
  const backend = await createTestBackend(t, { env: { ...model.env, ...options.env } })
  const { query } = backend.postgres
  const { base } = await startTestApi(t, backend)
  if (working) await startJobWorkers(backend)

  const finished = async (turn: string): Promise<TurnRow> => {
    await waitUntil(`the turn ${turn} is finished`, async () =>
      Boolean((await findTurn(query, turn))?.finished),
    )
    return (await findTurn(query, turn))!
  }

  const newTeam: TeamService['newTeam'] = async (labels = []) => {
    const team = await buildTeam(backend)
    const { org, account } = team
    const keys = { query, seal: backend.seal }
    await storeProviderKey(keys, { account, actor: 'test' }, 'openai', 'sk-0123456789abcdef')
    for (const label of labels) {
      await query('insert into org_tags (id, org, label, question) values ($1, $2, $3, $4)', [
        mintId(),
        org,
        label,
        `Is this about ${label}?`,
      ])
    }
    await team.defineRole('Everything', ['*'])
    const key = await team.addMember('ada@example.com', ['Everything'])
    const say: WorkingTeam['say'] = async (text, { as = key, timestamp } = {}) => {
      const messages = [
        { role: 'user', content: text, ...(timestamp !== undefined && { timestamp }) },
        { role: 'assistant', content: 'I see.', ...(timestamp !== undefined && { timestamp }) },
      ]
      const { body } = await createTestClient(base, as).post('/v1/memory/ingest', { messages })
      return body.operation_id as string
    }
    return {
      ...team,
      key,
      admin: createTestClient(base, team.adminKey),
      say,
      share: async (text, options) => finished(await say(text, options)),
      async memories() {
        const filter = sharedMemoryFilter({ vault: team.vault, epoch: team.epoch })
        const rows = await backend.mongo.memories.find(filter).sort({ _id: 1 }).toArray()
        return rows.map(sharedMemoryFromDocument)
      },
    }
  }
  return { backend, base, model, newTeam, finished }
}

/** The passes of turns by hand, where no worker takes jobs: things can change between them. */
export function createPasses({ backend, base }: TeamService) {
  const { query } = backend.postgres
  const { signal } = new AbortController()
  type Pass = (on: Backend, job: OrgExtractJob, stop: AbortSignal) => Promise<unknown>
  const after =
    (pass: Pass) =>
    async (job: OrgExtractJob): Promise<TurnRow> => {
      await pass(backend, job, signal)
      return (await findTurn(query, job.turn))!
    }
  const [extract, tag, reconcile] = [after(extractFacts), after(tagFacts), after(reconcileFacts)]
  return {
    extract,
    tag,
    reconcile,
    async run(job: OrgExtractJob): Promise<TurnRow> {
      await extract(job)
      await tag(job)
      return reconcile(job)
    },
    /** Ingests an exchange of a member. @returns the jobs of its turns, in the order they were said. */
    async said(
      key: string,
      content: string | object[],
      session?: string,
    ): Promise<[OrgExtractJob, ...OrgExtractJob[]]> {
      const { body } = await createTestClient(base, key).post('/v1/memory/ingest', {
        messages: typeof content === 'string' ? [{ role: 'user', content }] : content,
        ...(session !== undefined && { session_id: session }),
      })
      const { rows } = await query<{ data: OrgExtractJob }>(
        `select data from pgboss.job
         where name = 'org-extract' and (id = $1::uuid or data->>'operation' = $1::text)
         order by data ? 'operation', id`,
        [body.operation_id],
      )
      return rows.map(({ data }) => data) as [OrgExtractJob, ...OrgExtractJob[]]
    },
  }
}
