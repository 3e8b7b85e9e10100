import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A statement of a member that is worth sharing. */
export type Fact = {
  text: string
  /** How sure the extractor is, 0 to 1. */
  confidence: number
  /** A rule of the organization shortened it to a note. */
  note: boolean
  /** Tags that it has at least: of shared memories in the model's prompt. */
  inheritedTags?: string[]
}

/** A fact with its tags, by label and, in the same order, by id. */
export type TaggedFact = {
  text: string
  tags: string[]
  tagIds: string[]
  confidence: number
  /** It has no tag, and not every answer was a clear no. */
  unclear?: true
}

export type Decision = {
  /** The text of the fact, or of the changed memory. */
  text: string
  action: 'ADD' | 'UPDATE' | 'NONE'
  /** The memory that was added, changed or confirmed. */
  mem_id: string | null
  /** For an update: the version that the decision was made on. */
  version?: number
  /** For an update: further memories that the fact changes. */
  also?: { text: string; mem_id: string; version: number }[]
  /** For an update of a narrower memory: the fact itself, added once a person agrees. */
  copy?: { text: string; mem_id: string | null }
  /** For an addition: the reviewed memory that it would replace. */
  replaces?: string
  /** For an addition: unseen until a person has decided. */
  pending?: true
  /** For an addition: its author does not see it, so a person decides. */
  unseen?: true
  /** For no action: the memory has newer words. */
  outdated?: true
  /** For no action: the author does not see the memory. */
  hidden?: true
}

export type TurnRow = {
  /** For the first turn of an exchange: the operation that stores it in the private vault. */
  id: string
  org: string
  keyHash: Buffer
  author: string
  pass1: Fact[] | null
  pass2: TaggedFact[] | null
  pass3: Decision[] | null
  saidAt: Date
  createdAt: Date
  finished: boolean
  /** The leading turn of its batch, which may be itself; null: it goes alone. */
  batch: string | null
  /** Tags of the shared memories in the model's prompt. */
  inheritedTags: string[]
}

/** Finds a turn; undefined once its organization or member is gone. */
export async function findTurn(query: Query, id: string): Promise<TurnRow | undefined> {
  const { rows } = await query<TurnRow>(
    `select ${turnColumns} from org_turns where id = $1`,
    [id],
    'org-turns.find',
  )
  return rows[0]
}

/** Lists the unfinished turns of a batch in the order they were said. */
export async function findTurnBatch(query: Query, id: string): Promise<TurnRow[]> {
  const { rows } = await query<TurnRow>(
    `select ${turnColumns} from org_turns
     where (id = $1 or batch = $1) and finished_at is null
     order by said_at, id`,
    [id],
    'org-turns.find-batch',
  )
  return rows
}

/**
 * Lists the last turns of the same member within a time, in epoch milliseconds. None when the turn itself failed in
 * a batch, and none of those that did.
 */
export async function findEarlierTurns(
  query: Query,
  {
    turn,
    besides,
    from,
    upTo,
    limit,
  }: { turn: string; besides: readonly string[]; from: number; upTo: number; limit: number },
): Promise<Pick<TurnRow, 'id' | 'inheritedTags'>[]> {
  const { rows } = await query<Pick<TurnRow, 'id' | 'inheritedTags'>>(
    `select t.id, t.inherited_tags as "inheritedTags" from org_turns t
     where t.org_user = (select org_user from org_turns where id = $1 and not alone)
       and t.id <> all($2::uuid[]) and t.pass1 is not null and not t.alone
       and t.said_at > to_timestamp($3 / 1000.0) and t.said_at <= to_timestamp($4 / 1000.0)
     order by t.said_at desc, t.id desc limit $5`,
    [turn, besides, from, upTo, limit],
    'org-turns.earlier',
  )
  return rows
}

const turnColumns = `id, org, key_hash as "keyHash", author, pass1, pass2, pass3,
  said_at as "saidAt", created_at as "createdAt",
  finished_at is not null as finished, batch, inherited_tags as "inheritedTags"`

/**
 * Locks a turn, so that each of its passes is written once.
 *
 * @returns undefined once its organization or member is gone.
 */
export async function lockTurn(
  { query }: Transaction,
  id: string,
): Promise<Pick<TurnRow, 'pass1' | 'pass2' | 'pass3' | 'finished'> | undefined> {
  const { rows } = await query<Pick<TurnRow, 'pass1' | 'pass2' | 'pass3' | 'finished'>>(
    `select pass1, pass2, pass3, finished_at is not null as finished
     from org_turns where id = $1 for no key update`,
    [id],
    'org-turns.hold',
  )
  return rows[0]
}

type PassResults = {
  pass1: Fact[]
  pass2: TaggedFact[]
  pass3: Decision[]
  /** What an anti-rule kept from the first pass. */
  withheld: 'turn' | 'answer' | null
}

export async function savePassResults(
  { query }: Pick<Transaction, 'query'>,
  id: string,
  { pass1, pass2, pass3, withheld }: Partial<PassResults>,
): Promise<void> {
  const json = (value: unknown) => (value === undefined ? null : JSON.stringify(value))
  await query(
    `update org_turns set pass1 = coalesce($2::jsonb, pass1), pass2 = coalesce($3::jsonb, pass2),
            pass3 = coalesce($4::jsonb, pass3), withheld = coalesce($5, withheld)
     where id = $1`,
    [id, json(pass1), json(pass2), json(pass3), withheld ?? null],
    'org-turns.write',
  )
}

/** Withdraws decisions about memories that have changed, with their model answers. */
export async function discardDecisions(
  { query }: Transaction,
  ids: readonly string[],
): Promise<void> {
  await query(
    'update org_turns set pass3 = null where id = any($1::uuid[]) and finished_at is null',
    [ids],
  )
  await query(
    `delete from org_answers where turn = any($1::uuid[]) and question like 'reconcile%'`,
    [ids],
  )
}

/** Ends a turn whose decisions are carried out, and deletes its model answers. */
export async function finishTurn({ query }: Transaction, id: string): Promise<void> {
  await query('update org_turns set finished_at = coalesce(finished_at, now()) where id = $1', [id])
  await query('delete from org_answers where turn = $1', [id])
}

/**
 * Whether the content of a turn may be used: the exchange was not cancelled, its vault and session were not
 * cleared. In a transaction this holds until the end.
 */
export async function isStillValid(
  { query }: Pick<Transaction, 'query'>,
  source: {
    turn: string
    operation?: string
    vault: string
    epoch: number
    session: string | null
    sessionEpoch: number
  },
): Promise<boolean> {
  const { rows } = await query<{ usable: boolean }>(
    `select v.epoch = $3 and coalesce(s.epoch, 0) = $5
            and not exists (select from operations where id = $1 and state = 'cancelled') as usable
     from vaults v left join sessions s on s.vault = v.id and s.session = $4
     where v.id = $2 for share of v`,
    [
      source.operation ?? source.turn,
      source.vault,
      source.epoch,
      source.session ?? '',
      source.session === null ? 0 : source.sessionEpoch,
    ],
    'org-turns.standing',
  )
  return rows[0]?.usable ?? false
}

/** Deletes turns that ended 30 days ago, and others after 400 days. @returns how many. */
export async function dropOldTurns(query: Query): Promise<number> {
  const { rowCount } = await query(
    `delete from org_turns where ctid = any(array(
       select ctid from org_turns
       where created_at < now() - interval '30 days'
         and (finished_at is not null or created_at < now() - interval '400 days')
       limit 10000))`,
  )
  return rowCount
}

export async function findModelAnswer(
  query: Query,
  turn: string,
  question: string,
): Promise<unknown> {
  const { rows } = await query<{ answer: unknown }>(
    'select answer from org_answers where turn = $1 and question = $2',
    [turn, question],
    'org-answers.find',
  )
  return rows[0]?.answer
}

/** Stores the answer of a model, unless another worker was faster. @returns whether it did. */
export async function saveModelAnswer(
  { query }: Transaction,
  turn: string,
  question: string,
  answer: unknown,
): Promise<boolean> {
  const { rowCount } = await query(
    `insert into org_answers (turn, question, answer)
     select id, $2, $3::jsonb from org_turns where id = $1 on conflict do nothing`,
    [turn, question, JSON.stringify(answer)],
    'org-answers.keep',
  )
  return rowCount === 1
}
