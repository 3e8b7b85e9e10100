import { embeddersOfSpaces } from '#shared/models/space-embedders.ts'
import { Refusal } from '#shared/core/errors.ts'
import { inTurn } from '#shared/core/keyed-mutex.ts'
import type { Caller } from '#shared/access/caller.ts'
import { endsOf, isOver, type Ends } from '#shared/domain/expiry.ts'
import { isCurrent, noSuchMemory } from '#shared/vault/read/inspect.ts'
import { announceEnds, keepToPolicy, withdrawEnds } from '#shared/vault/base/retention-on-write.ts'
import {
  editableMemory,
  holdersOf,
  replaceText,
  type Editable,
  type NewText,
} from '#shared/vault/edit/edits.mongo.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { isEditSettled, settleEdit } from '#shared/vault/edit/edits.postgres.ts'
import { sessionEpochsOf } from '#shared/vault/base/vault-lock.postgres.ts'
import { holdVault } from '#shared/vault/base/vaults.postgres.ts'
import { screened } from '#shared/privacy/redaction-policy.ts'
import { tokensOf } from '#shared/core/tokens.ts'
import type { EditJob } from '#shared/domain/job-payloads.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

export type Edit = {
  /** The UUIDv7 this edit is billed under; asking again under the same one edits once. */
  operation: string
  /** In any case. */
  id: string
  text: string
  /** When it is to be over, in epoch milliseconds; null for never, undefined leaves that as it is. */
  expiresAt?: number | null | undefined
}

export type Edited = Pick<Editable, 'id' | 'tier' | 'at' | 'importance' | 'tokens'> & Ends

type Editing = Stores & { embedders: Embedders; queue: Queue; log: Log }

/** By then an edit is settled, or whoever made it has died. */
const settledAfterSeconds = 5

/** What a vault is held for while its texts are compared with a new one. */
const contents = 'contents'

/** Somebody else would have to change the same memory between each reading and writing of it. */
const triesMax = 5

/** An edit older than this is settled, by itself or by its job; its bill may have been filed away. */
const unsettledMs = 24 * 3600 * 1000

/**
 * Gives a memory another text; its id, date, tier and importance stay. The text is embedded first, into
 * every space the memory has a vector in: when that fails nothing is changed. Then it is written in one
 * step and settled (bill, debt, change log) in the transaction that held the vault's contents; a job
 * promised before settles it if this process dies in between.
 *
 * @returns the memory as it is now.
 * @throws Refusal `invalid` for a text without words, or one that the policy blocks; `missing` when the vault has no such memory;
 *   `conflict` when another memory of the vault has this text; `upstream` when an embedding model does
 *   not answer; `unavailable` when a store is out of reach.
 */
export async function editMemory(backend: Editing, caller: Caller, edit: Edit): Promise<Edited> {
  if (edit.text.trim() === '') throw new Refusal('invalid', 'text holds no words')
  const text = screened(caller.row.redaction, edit.text, 'text')
  const id = edit.id.toLowerCase()
  const content = { text, hash: contentHash(text), tokens: tokensOf(text) }
  const job = jobOf(caller, edit.operation, id)

  for (let tries = 0; tries < triesMax; tries++) {
    const memory = await editableMemory(backend.mongo, caller.scope, id)
    if (!memory || !(await isCurrent(backend, caller.scope, memory))) throw noSuchMemory()
    const { query } = backend.postgres
    if (memory.edited?.operation === edit.operation) {
      await settleWritten(backend, job)
      return editedOf(memory)
    }
    // A later edit stands, though the answer of this one was lost and it is sent again.
    if (await isEditSettled(backend.postgres, edit.operation)) {
      return { ...editedOf(memory), tokens: content.tokens }
    }
    await refuseTwin(backend.mongo, query, caller.scope, { hash: content.hash, except: id })
    const vectors = await vectorsOf(backend, memory, content.text)
    // Sent again under the same id it is sent once.
    await backend.queue.send(backend.postgres, 'edit-settle', [
      { id: edit.operation, data: job, priority: 0, afterSeconds: settledAfterSeconds },
    ])
    const ends = newEnds(caller, memory, edit)
    const announced = await announceEnds(backend, [{ ...job, memories: [ends ?? {}] }])
    const written = await inTurn(`edit ${job.vault}`, () =>
      write(backend, caller, memory, { job, ...content, vectors, ...(ends && { ends }) }),
    )
    await withdrawEnds(backend, announced)
    if (written) return { ...editedOf({ ...memory, ...withEnds(ends) }), tokens: content.tokens }
  }
  throw new Refusal('conflict', 'Somebody else keeps changing this memory', 'Try again')
}

/**
 * Settles an edit that was written, if it was, and is not settled yet.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function settleWritten({ postgres, mongo }: Stores, job: EditJob): Promise<void> {
  if (await isEditSettled(postgres, job.operation)) return
  await postgres.transaction(async tx => {
    await holdVault(tx, job.vault, contents)
    const memory = await editableMemory(mongo, job, job.id)
    if (memory?.edited?.operation !== job.operation) return
    await settle(tx, job, memory, { tokens: memory.tokens, before: memory.edited.before })
  })
}

/** @returns false when the memory has vectors in other spaces by now, or is changed by others. */
function write(
  backend: Editing,
  caller: Caller,
  read: Editable,
  { job, ...content }: Omit<NewText, 'operation' | 'before'> & { job: EditJob },
): Promise<boolean> {
  return backend.postgres.transaction(async tx => {
    await holdVault(tx, job.vault, contents)
    // Edits of the same memory queue here: each goes on from what the one before it has left.
    const memory = await editableMemory(backend.mongo, caller.scope, read.id)
    // One that has come to its end meanwhile stays over, whatever it was to become.
    if (!memory || isOver(memory, Date.now())) throw noSuchMemory()
    if (String(memory.spaces) !== String(read.spaces)) return false
    const twin = { hash: content.hash, except: memory.id }
    await refuseTwin(backend.mongo, tx.query, caller.scope, twin)
    const before = await countedBefore(tx, memory)
    const next = { ...content, operation: job.operation, before }
    if (!(await replaceText(backend.mongo, caller.scope, memory, next))) return false
    if (content.ends) {
      const written = { ...job, ids: [memory.id], days: caller.row.retentionDays }
      await keepToPolicy(backend, tx.query, written)
    }
    await settle(tx, job, memory, { tokens: content.tokens, before })
    return true
  })
}

const editedOf = ({ expiresAt, ...memory }: Editable): Edited => ({
  ...memory,
  ...(expiresAt !== undefined && { expiresAt }),
})

const withEnds = (ends: Ends | undefined) => (ends ? { expiresAt: ends.expiresAt } : {})

/** Undefined where the edit does not speak of it. */
const newEnds = ({ row }: Caller, { storedAt }: Editable, { expiresAt }: Edit): Ends | undefined =>
  expiresAt === undefined
    ? undefined
    : endsOf({ asked: expiresAt, days: row.retentionDays, storedAt })

/** What the debt counts a memory for: its tokens, unless an edit before this one died unsettled. */
async function countedBefore(tx: Transaction, { tokens, edited }: Editable): Promise<number> {
  if (!edited || Date.now() - edited.at > unsettledMs) return tokens
  return (await isEditSettled(tx, edited.operation)) ? tokens : edited.before
}

async function settle(
  tx: Transaction,
  { operation, vault, epoch, account, keyHash }: EditJob,
  memory: Editable,
  { tokens, before }: { tokens: number; before: number },
): Promise<void> {
  const { id, session } = memory
  await settleEdit(tx, {
    bill: {
      id: operation,
      account,
      vault,
      keyHash: Buffer.from(keyHash, 'hex'),
      kind: 'edit',
      session,
      memoryTokens: tokens,
    },
    epoch,
    id,
    session,
    debt: debtChangeOf(memory, tokens - before),
  })
}

/** Only what no reflection covers is owed, and of raw memories only those of the core vault. */
function debtChangeOf({ tier, session, consolidated }: Editable, tokens: number): DebtChange {
  if (consolidated || session !== null || tier === 3) return {}
  return tier === 1 ? { rawTokens: tokens } : { tier2Tokens: tokens }
}

async function refuseTwin(
  mongo: Editing['mongo'],
  query: Query,
  scope: Caller['scope'],
  content: { hash: Buffer; except: string },
): Promise<void> {
  const holders = await holdersOf(mongo, scope, content)
  const sessions = holders.flatMap(({ session }) => session ?? [])
  const epochs = await sessionEpochsOf(query, scope, sessions)
  const isLive = ({ session, sessionEpoch }: (typeof holders)[number]) =>
    session === null || sessionEpoch === (epochs.get(session) ?? 0)
  if (!holders.some(isLive)) return
  throw new Refusal(
    'conflict',
    'Another memory has this text already',
    'Delete one of the two, or word them differently',
  )
}

async function vectorsOf(
  { embedders, log }: Editing,
  { id, spaces }: Editable,
  text: string,
): Promise<Map<string, Float32Array>> {
  const { embedders: ours, lost } = await embeddersOfSpaces(embedders, spaces)
  for (const { space, reason } of lost) log.warn({ memory: id, space, reason }, 'edit.space-lost')
  const vectors = await Promise.all(ours.map(embedder => embedder.embedTexts([text])))
  return new Map(ours.map((embedder, index) => [embedder.space, vectors[index]![0]!]))
}

const jobOf = ({ scope, account, keyHash }: Caller, operation: string, id: string): EditJob => ({
  operation,
  vault: scope.vault,
  epoch: scope.epoch,
  account,
  keyHash: keyHash.toString('hex'),
  id,
})
