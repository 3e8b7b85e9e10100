import { usagePartsSql } from '#shared/billing/usage-sums.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** What usage is told by; also the names of the columns. */
export const usageGroups = ['day', 'key', 'user', 'session', 'model'] as const
export type UsageGroup = (typeof usageGroups)[number]

/** Tokens of the model calls of one model. */
export type ModelTokens = { model: string; input: number; cached: number; output: number }

export type TokenSums = {
  requests: number
  input: number
  cached: number
  output: number
  memory: number
  /** Without those of no model, and without models of which no tokens were counted. */
  models: ModelTokens[]
}

/** Usage of one group; what it is not told by is missing. */
export type UsageRow = TokenSums & {
  /** Null: the key is gone, or it is the pipeline of an organization. */
  key?: string | null
  /** The organization of the key or the pipeline; null for any other key. */
  org?: string | null
  user?: string | null
  session?: string | null
  model?: string
  day?: string
} & Record<(typeof rankNames)[number], string | number>

/** Where a row stands in its list: the newest day, then most tokens first. */
const rankNames = ['rank1', 'rank2', 'rank3', 'rank4'] as const
export type UsagePosition = (string | number)[]

export const positionOf = (row: UsageRow): UsagePosition => rankNames.map(name => row[name])

const columnsOf: Record<UsageGroup, [name: string, sql: string][]> = {
  day: [['day', 'p.day']],
  key: [
    ['key', 'k.id'],
    ['org', 'k.org'],
  ],
  user: [['user', 'k.external_id']],
  // Names of a member's sessions are words of the member, which the owner of the account is not told.
  session: [['session', 'case when k.org is null then p.session end']],
  model: [['model', 'p.model']],
}

const sumNames = ['requests', 'input', 'cached', 'output', 'memory']
const sumsSql = sumNames.map(name => `coalesce(sum(${name}), 0) as ${name}`).join(', ')

const modelsSql = `coalesce(json_agg(json_build_object('model', of_model, 'input', input, 'cached', cached,
    'output', output)) filter (where of_model <> '' and (input > 0 or output > 0)), '[]') as models`

/**
 * Reads the usage of an account in one statement: a page of its groups, and the sums of all of them.
 *
 * @param after the last row of the page before
 */
export async function readUsage(
  query: Query,
  account: string,
  groups: readonly UsageGroup[],
  filter: {
    start: Date
    /** Exclusive. */
    end: Date
    key: string | undefined
    user: string | undefined
    model: string | undefined
  },
  { after, limit }: { after: UsagePosition | undefined; limit: number },
): Promise<{ rows: UsageRow[]; total: TokenSums }> {
  const { start, end, key, user, model } = filter
  const columns = groups.flatMap(group => columnsOf[group])
  const names = columns.map(([name]) => `"${name}"`)
  const isOfKeys = key !== undefined || user !== undefined
  const ofDays = `d.account = $1${isOfKeys ? ' and d.key_hash in (select hash from keys)' : ''}`
  const { rows } = await query<{ rows: UsageRow[]; total: TokenSums }>(
    `with keys as materialized (
       select k.hash, k.id, k.org, v.external_id
       from memory_keys k join vaults v on v.id = k.vault
       where k.account = $1 and ($4::uuid is null or k.id = $4)
         and ($5::text is null or v.external_id = $5)
       union all
       -- Pipelines of organizations are billed under a hash of theirs.
       select sha256(convert_to('organization ' || o.id, 'UTF8')), null, o.id, null
       from orgs o where o.account = $1 and $4 is null and $5 is null
     ), ${usagePartsSql(ofDays, groups.includes('session'))}, grouped as (
       select ${columns.map(([name, sql]) => `${sql} as "${name}", `).join('')} p.model as of_model,
              sum(p.requests) as requests, sum(p.input_tokens) as input,
              sum(p.cached_tokens) as cached, sum(p.output_tokens) as output,
              sum(p.memory_tokens) as memory
       from parts p left join keys k on k.hash = p.key_hash
       where $6::text is null or p.model = $6
       group by ${columns.map(([, sql]) => `${sql}, `).join('')} p.model
     ), ranked as (
       select ${names.join(', ')}, ${sumsSql}, ${modelsSql},
              ${groups.includes('day') ? `date '9999-12-31' - "day"` : '0'} as rank1,
              -sum(input + output) as rank2, -sum(memory) as rank3,
              json_build_array(${names.join(', ')})::text collate "C" as rank4
       from grouped group by ${names.join(', ')}
     ), page as (
       select * from ranked
       where $7::int is null
         or (rank1, rank2, rank3, rank4) > ($7, $8::numeric, $9::numeric, $10::text collate "C")
       order by rank1, rank2, rank3, rank4 limit $11
     )
     select (select coalesce(json_agg(page), '[]') from page) as rows,
            (select row_to_json(total) from (
               select ${sumsSql}, ${modelsSql} from (
                 select of_model, ${sumsSql}
                 from grouped group by of_model) of_models) total) as total`,
    [
      account,
      start,
      end,
      key ?? null,
      user ?? null,
      model ?? null,
      ...(after ?? [null, null, null, null]),
      limit,
    ],
  )
  return rows[0]!
}
