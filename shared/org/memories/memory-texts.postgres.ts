import { eraseAdminResponses } from '#shared/org/memories/admin-responses.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A fact in the passes of a turn. */
export type TurnFact = { turn: string; position: number }

/** Empties the words of a fact in the trail of its turn. */
export async function forgetTurnFact(
  query: Query,
  org: string,
  { turn, position }: TurnFact,
): Promise<void> {
  // Further memories that a fact changed have places after those of the facts.
  await query(
    `with place as (
       select id, ($3::int % greatest(jsonb_array_length(pass3), 1))::text as fact
       from org_turns where id = $1 and org = $2
     )
     update org_turns t
     set pass1 = jsonb_set(pass1, array[p.fact, 'text'], '""', false),
         pass2 = jsonb_set(pass2, array[p.fact, 'text'], '""', false),
         pass3 = jsonb_set(
           jsonb_set(pass3, array[p.fact, 'text'], '""', false) #- array[p.fact, 'also'],
           array[p.fact, 'copy', 'text'], '""', false)
     from place p where t.id = p.id`,
    [turn, org, position],
    'statements.forget-trail',
  )
}

/**
 * Empties the words of a removed memory in its history, in the trails of its turns and in answers stored for
 * Idempotency-Keys, and deletes what members are listed to have said of it. The audit, which has no words, stays.
 */
export async function forgetMemory(tx: Transaction, org: string, memory: string): Promise<void> {
  const { query } = tx
  await query(
    `update shared_writes set before = null, after = null
     where org = $1 and memory = $2 and state = 'done'`,
    [org, memory],
    'shared.forget-history',
  )
  const { rows } = await query<TurnFact>(
    'delete from shared_statements where org = $1 and memory = $2 returning turn, position',
    [org, memory],
    'statements.forget-memory',
  )
  for (const fact of rows) await forgetTurnFact(query, org, fact)
  await eraseAdminResponses(tx, org, memory)
}
