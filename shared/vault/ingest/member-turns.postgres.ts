import type { Transaction } from '#shared/storage/postgres/connect.ts'

export type InsertedTurn = {
  org: string
  /** The member's turn before it is older than the quiet time. */
  isAfterQuiet: boolean
}

/**
 * Writes the turns of members who share, by the keys of their exchanges. Locks the rows of organizations and
 * users, so that a concurrent removal of one fails no other exchange.
 *
 * @param quietSeconds after which a member counts as silent
 * @returns what was inserted, by the ids of the turns.
 */
export async function insertTurns(
  { query }: Transaction,
  turns: readonly {
    id: string
    keyHash: Buffer
    /** Epoch milliseconds. */
    saidAt: number
    /** Characters that are not extracted from. */
    leftOut: number
    /** Tags of the shared memories in the prompt. */
    inheritedTags?: readonly string[]
  }[],
  quietSeconds = 0,
): Promise<Map<string, InsertedTurn>> {
  const { rows } = await query<InsertedTurn & { id: string }>(
    `with item as (
       select id, hash, to_timestamp(at / 1000) as said_at, left_out,
              array(select jsonb_array_elements_text(tags)) as inherited_tags
       from unnest($1::uuid[], $2::bytea[], $3::float8[], $4::int[], $5::jsonb[])
            as item(id, hash, at, left_out, tags)
     ), team as (
       select o.id from orgs o
       where o.id in (select k.org from memory_keys k join item i on i.hash = k.hash)
       order by o.id for key share
     ), people as (
       select u.id, u.org, u.team_member_id, u.shares from org_users u
       where u.id in (select k.org_user from memory_keys k join item i on i.hash = k.hash)
       order by u.id for key share
     )
     insert into org_turns as turn (id, org, org_user, key_hash, author, said_at, left_out, inherited_tags)
     select i.id, t.id, p.id, i.hash, p.team_member_id, i.said_at, i.left_out, i.inherited_tags
     from item i join memory_keys k on k.hash = i.hash and k.kind = 'member' and k.shares
     join people p on p.id = k.org_user and p.shares join team t on t.id = p.org
     on conflict (id) do nothing
     returning id, org, coalesce(
       (select e.created_at from org_turns e where e.org = turn.org and e.author = turn.author
        order by e.id desc limit 1) < now() - make_interval(secs => $6),
       true) as "isAfterQuiet"`,
    [
      turns.map(({ id }) => id),
      turns.map(({ keyHash }) => keyHash),
      turns.map(({ saidAt }) => saidAt),
      turns.map(({ leftOut }) => leftOut),
      turns.map(({ inheritedTags = [] }) => JSON.stringify(inheritedTags)),
      quietSeconds,
    ],
    'org-turns.insert',
  )
  return new Map(rows.map(({ id, ...turn }) => [id, turn]))
}
