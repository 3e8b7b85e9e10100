import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A statement of a member that is worth sharing. */
export type Fact = {
  text: string
  /** How sure the extractor is that it was said and is worth sharing, 0 to 1. */
  confidence: number
  /** Shortened by a rule of the organization to a high-level note. */
  note: boolean
  /** Tags that it has at least: of shared memories in the model's prompt. */
  inheritedTags?: string[]
}

/** A fact with the tags it was given, by their labels and, in the same order, their ids. */
export type TaggedFact = {
  text: string
  tags: string[]
  tagIds: string[]
  confidence: number
  /** It has no tag, and not every answer was a clear no. */
  unclear?: true
}

/** The decision about a fact. */
export type Decision = {
  /** The text of the fact, or of the changed memory. */
  text: string
  action: 'ADD' | 'UPDATE' | 'NONE'
  /** The memory that was added or changed, or that contains the fact already. */
  mem_id: string | null
  /** Of an update: the version of the memory that the decision was made on. */
  version?: number
  /** Of an update: further memories that the fact changes. */
  also?: { text: string; mem_id: string; version: number }[]
  /** Of an update of what fewer may see: the fact itself, added for all who may see it once a person agrees. */
  copy?: { text: string; mem_id: string | null }
  /** Of an addition: the memory it would replace, whose words a person has decided about. */
  replaces?: string
  /** Of an addition: no member sees it before a person has decided about it. */
  pending?: true
  /** Of an addition: its author does not see it, so a person looks at it. */
  unseen?: true
  /** Of no action: the memory has words of a later time. */
  outdated?: true
  /** Of no action: the author does not see the memory that says it. */
  hidden?: true
}

/** A turn with the results of the passes so far. */
export type TurnRow = {
  /** Of the first turn of an exchange, the operation that stores it in the member's private vault. */
  id: string
  org: string
  keyHash: Buffer
  author: string
  pass1: Fact[] | null
  pass2: TaggedFact[] | null
  pass3: Decision[] | null
  /** When it was said. */
  saidAt: Date
  createdAt: Date
  finished: boolean
  /** The turn whose jobs it goes along with, its own id for that one; null: it goes by itself. */
  batch: string | null
  /** Tags of the shared memories that the model was told when it answered. */
  inheritedTags: string[]
}

/** A turn, or undefined once its organization or member is gone. */
export async function findTurn(query: Query, id: string): Promise<TurnRow | undefined> {
  const { rows } = await query<TurnRow>(
    `select ${turnColumns} from org_turns where id = $1`,
    [id],
    'org-turns.find',
  )
  return rows[0]
}

/** A turn and those of its batch that are not finished, in the order they were said. */
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
 * The last turns of the member of a turn within a time, in epoch milliseconds. None where the turn itself has
 * failed in a batch, and none that has: what cannot be extracted is no context, either.
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

/** Stores the result of a pass. */
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

/** Withdraws decisions that a change of the shared memory made obsolete, with their model answers. */
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
 * Whether the content of a turn may still be used: the exchange was not cancelled, and neither its vault
 * nor its session has been cleared since. In a transaction this holds until the end.
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

/**
 * Deletes turns that ended 30 days ago; others stay as long as their dead letters may be redriven.
 *
 * @returns how many.
 */
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

/** The stored answer of a model, or undefined. */
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
