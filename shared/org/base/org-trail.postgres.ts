import type { Query } from '#shared/storage/postgres/connect.ts'
import { givenUpQueues } from '#shared/org/base/pipeline-state.postgres.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'
import type { Decision, Fact, TaggedFact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'

type TurnState = 'waiting' | 'done' | 'given_up'

type TrailEntry = { id: string; author: string; createdAt: Date }

export type TurnTrailEntry = TrailEntry &
  Pick<TurnRow, 'pass1' | 'pass2' | 'pass3'> & {
    kind: 'write'
    state: TurnState
    /** Characters of the exchange that were skipped. */
    leftOut: number
    /** What an anti-rule kept from the first pass. */
    withheld: 'turn' | 'answer' | null
  }

/** One retrieval of a member: the shared memories that it returned, and those that it withheld. */
export type RetrievalTrailEntry = TrailEntry & {
  kind: 'retrieval'
  allowedTags: string[]
  wildcard: boolean
  /** The number of memories that the member may see, and may not. */
  permitted: number
  dropped: number
  sample: { id: string; tags: string[] }[]
  request: 'search' | 'prepare' | 'date-search'
  /** Ids of returned memories, best first. */
  returned: string[]
  /** The memories that were denied, best first; null while unknown. */
  denied: { id: string; tags: string[] }[] | null
}

type TrailQuery = {
  org: string
  /** Null: every member. */
  author: string | null
  /** Lists turns of this state alone, without retrievals. */
  state?: TurnState | undefined
  limit: number
}

/** Lists the trail of an organization or of one member, newest first. */
export async function listTrail(
  query: Query,
  question: TrailQuery,
): Promise<(TurnTrailEntry | RetrievalTrailEntry)[]> {
  const turns = await listTurns(query, question)
  if (question.state) return turns
  const { org, author, limit } = question
  const retrievals = await query<RetrievalTrailEntry>(
    `select 'retrieval' as kind, id, author, created_at as "createdAt",
            allowed_tags as "allowedTags", wildcard, permitted, dropped, sample,
            request, returned, denied
     from shared_retrievals where org = $1 and ($2::text is null or author = $2)
     order by created_at desc, id desc limit $3`,
    [org, author, limit],
  )
  return [...turns, ...retrievals.rows]
    .toSorted((one, other) => newerFirst(one, other))
    .slice(0, limit)
}

const isGivenUp =
  '(t.id::text in (select turn from dead) or t.batch::text in (select turn from dead))'

const stateConditions: Record<TurnState, string> = {
  waiting: `t.finished_at is null and not coalesce(${isGivenUp}, false)`,
  done: 't.finished_at is not null',
  given_up: `t.finished_at is null and ${isGivenUp}`,
}

async function listTurns(
  query: Query,
  { org, author, state, limit }: TrailQuery,
): Promise<TurnTrailEntry[]> {
  const { rows } = await query<TurnTrailEntry>(
    `with dead as materialized (
       select data->>'turn' as turn from ${pgBossSchema}.job
       where name = any($4) and data->>'org' = $1::text and state < 'active'
     )
     select 'write' as kind, id, author, created_at as "createdAt", left_out as "leftOut",
            withheld, pass1, pass2, pass3,
            case when ${stateConditions.done} then 'done'
                 when ${isGivenUp} then 'given_up' else 'waiting' end as state
     from org_turns t
     where org = $1::uuid and ($2::text is null or author = $2)
       and ${state ? stateConditions[state] : 'true'}
     order by id desc limit $3`,
    [org, author, limit, givenUpQueues],
  )
  return rows
}

function newerFirst(one: TrailEntry, other: TrailEntry): number {
  const later = other.createdAt.getTime() - one.createdAt.getTime()
  return later || (one.id < other.id ? 1 : -1)
}

export type MemoryPassResults = { pass1: Fact[]; pass2: TaggedFact[]; pass3: Decision[] }

/**
 * Finds the results of the passes about memories, by id: of each the newest turn of the last 30 days that added or
 * changed it.
 */
export async function findPassResults(
  query: Query,
  org: string,
  memories: readonly string[],
): Promise<Map<string, MemoryPassResults>> {
  const { rows } = await query<MemoryPassResults & { memory: string }>(
    `select asked.memory, t.pass1, t.pass2, t.pass3
     from unnest($2::text[]) as asked(memory)
     cross join lateral (
       select pass1, pass2, pass3 from org_turns
       where org = $1
         and (pass3 @> jsonb_build_array(jsonb_build_object('mem_id', asked.memory))
              or pass3 @> jsonb_build_array(jsonb_build_object(
                   'also', jsonb_build_array(jsonb_build_object('mem_id', asked.memory))))
              or pass3 @> jsonb_build_array(
                   jsonb_build_object('copy', jsonb_build_object('mem_id', asked.memory))))
       order by id desc limit 20
     ) t`,
    [org, memories],
    'trail.memories',
  )
  const passes = new Map<string, MemoryPassResults>()
  for (const { memory, pass1, pass2, pass3 } of rows) {
    const isAbout = pass3.map(
      ({ action, mem_id, also = [], copy }) =>
        (mem_id === memory && action !== 'NONE') ||
        also.some(further => further.mem_id === memory) ||
        copy?.mem_id === memory,
    )
    if (passes.has(memory) || !isAbout.includes(true)) continue
    const about = (_: unknown, index: number): boolean => isAbout[index]!
    passes.set(memory, {
      pass1: pass1.filter(about),
      pass2: pass2.filter(about),
      pass3: pass3.filter(about),
    })
  }
  return passes
}

/** Finds, by the ids of added memories, the memories that they were added to replace, in turns of the last 30 days. */
export async function findReplacedMemories(
  query: Query,
  org: string,
  memories: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await query<{ memory: string; replaced: string }>(
    `select asked.memory, added.replaced
     from unnest($2::text[]) as asked(memory)
     cross join lateral (
       select decision->>'replaces' as replaced
       from org_turns t, jsonb_array_elements(t.pass3) decision
       where t.org = $1
         and t.pass3 @> jsonb_build_array(jsonb_build_object('mem_id', asked.memory, 'action', 'ADD'))
         and decision->>'mem_id' = asked.memory and decision ? 'replaces'
       limit 1
     ) added`,
    [org, memories],
    'trail.replaced',
  )
  return new Map(rows.map(({ memory, replaced }) => [memory, replaced]))
}
