import { resolveSpaceEmbedders } from '#shared/models/space-embedders.ts'
import { Refusal } from '#shared/core/errors.ts'
import { withKeyedMutex } from '#shared/core/keyed-mutex.ts'
import type { Caller } from '#shared/access/caller.ts'
import { expiryFor, isExpired, type Expiry } from '#shared/domain/expiry.ts'
import { isInCurrentEpoch, memoryNotFound } from '#shared/vault/read/inspect.ts'
import {
  scheduleExpiry,
  applyCurrentRetention,
  cancelScheduledExpiry,
} from '#shared/vault/base/apply-retention.ts'
import {
  findEditableMemory,
  memoriesWithSameText,
  replaceText,
  type EditableMemory,
  type TextReplacement,
} from '#shared/vault/edit/edits.mongo.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { isEditFinalized, finalizeEdit } from '#shared/vault/edit/edits.postgres.ts'
import { findSessionEpochs } from '#shared/vault/base/vault-state.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import { countTokens } from '#shared/core/tokens.ts'
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

export type EditedMemory = Pick<EditableMemory, 'id' | 'tier' | 'at' | 'importance' | 'tokens'> &
  Expiry

type EditBackend = Stores & { embedders: Embedders; queue: Queue; log: Log }

/** By then an edit is settled, or whoever made it has died. */
const finalizeAfterSeconds = 5

/** What a vault is held for while its texts are compared with a new one. */
const contentsLock = 'contents'

/** Somebody else would have to change the same memory between each reading and writing of it. */
const triesMax = 5

/** An edit older than this is settled, by itself or by its job; its bill may have been filed away. */
const finalizedWithinMs = 24 * 3600 * 1000

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
export async function editMemory(
  backend: EditBackend,
  caller: Caller,
  edit: Edit,
): Promise<EditedMemory> {
  if (edit.text.trim() === '') throw new Refusal('invalid', 'text holds no words')
  const text = applyRedaction(caller.keyRow.redaction, edit.text, 'text')
  const id = edit.id.toLowerCase()
  const content = { text, hash: contentHash(text), tokens: countTokens(text) }
  const job = buildEditJob(caller, edit.operation, id)

  for (let tries = 0; tries < triesMax; tries++) {
    const memory = await findEditableMemory(backend.mongo, caller.scope, id)
    if (!memory || !(await isInCurrentEpoch(backend, caller.scope, memory))) throw memoryNotFound()
    const { query } = backend.postgres
    if (memory.edited?.operation === edit.operation) {
      await finalizeWrittenEdit(backend, job)
      return toEditedMemory(memory)
    }
    // A later edit stands, though the answer of this one was lost and it is sent again.
    if (await isEditFinalized(backend.postgres, edit.operation)) {
      return { ...toEditedMemory(memory), tokens: content.tokens }
    }
    await refuseDuplicateText(backend.mongo, query, caller.scope, {
      hash: content.hash,
      except: id,
    })
    const vectors = await embedIntoSpaces(backend, memory, content.text)
    // Sent again under the same id it is sent once.
    await backend.queue.send(backend.postgres, 'edit-settle', [
      { id: edit.operation, data: job, priority: 0, afterSeconds: finalizeAfterSeconds },
    ])
    const expiry = requestedExpiry(caller, memory, edit)
    const announced = await scheduleExpiry(backend, [{ ...job, memories: [expiry ?? {}] }])
    const written = await withKeyedMutex(`edit ${job.vault}`, () =>
      writeEdit(backend, caller, memory, { job, ...content, vectors, ...(expiry && { expiry }) }),
    )
    await cancelScheduledExpiry(backend, announced)
    if (written)
      return { ...toEditedMemory({ ...memory, ...expiryField(expiry) }), tokens: content.tokens }
  }
  throw new Refusal('conflict', 'Somebody else keeps changing this memory', 'Try again')
}

/**
 * Settles an edit that was written, if it was, and is not settled yet.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function finalizeWrittenEdit(
  { postgres, mongo }: Stores,
  job: EditJob,
): Promise<void> {
  if (await isEditFinalized(postgres, job.operation)) return
  await postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, job.vault, contentsLock)
    const memory = await findEditableMemory(mongo, job, job.id)
    if (memory?.edited?.operation !== job.operation) return
    await finalizeInTransaction(tx, job, memory, {
      tokens: memory.tokens,
      before: memory.edited.before,
    })
  })
}

/** @returns false when the memory has vectors in other spaces by now, or is changed by others. */
function writeEdit(
  backend: EditBackend,
  caller: Caller,
  read: EditableMemory,
  { job, ...content }: Omit<TextReplacement, 'operation' | 'debtTokensBefore'> & { job: EditJob },
): Promise<boolean> {
  return backend.postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, job.vault, contentsLock)
    // Edits of the same memory queue here: each goes on from what the one before it has left.
    const memory = await findEditableMemory(backend.mongo, caller.scope, read.id)
    // One that has come to its end meanwhile stays over, whatever it was to become.
    if (!memory || isExpired(memory, Date.now())) throw memoryNotFound()
    if (String(memory.spaces) !== String(read.spaces)) return false
    const duplicate = { hash: content.hash, except: memory.id }
    await refuseDuplicateText(backend.mongo, tx.query, caller.scope, duplicate)
    const before = await tokensBeforeEdit(tx, memory)
    const next = { ...content, operation: job.operation, debtTokensBefore: before }
    if (!(await replaceText(backend.mongo, caller.scope, memory, next))) return false
    if (content.expiry) {
      const written = { ...job, ids: [memory.id], days: caller.keyRow.retentionDays }
      await applyCurrentRetention(backend, tx.query, written)
    }
    await finalizeInTransaction(tx, job, memory, { tokens: content.tokens, before })
    return true
  })
}

const toEditedMemory = ({ expiresAt, ...memory }: EditableMemory): EditedMemory => ({
  ...memory,
  ...(expiresAt !== undefined && { expiresAt }),
})

const expiryField = (expiry: Expiry | undefined) => (expiry ? { expiresAt: expiry.expiresAt } : {})

/** Undefined where the edit does not speak of it. */
const requestedExpiry = (
  { keyRow }: Caller,
  { storedAt }: EditableMemory,
  { expiresAt }: Edit,
): Expiry | undefined =>
  expiresAt === undefined
    ? undefined
    : expiryFor({ asked: expiresAt, days: keyRow.retentionDays, storedAt })

/** What the debt counts a memory for: its tokens, unless an edit before this one died unsettled. */
async function tokensBeforeEdit(
  tx: Transaction,
  { tokens, edited }: EditableMemory,
): Promise<number> {
  if (!edited || Date.now() - edited.at > finalizedWithinMs) return tokens
  return (await isEditFinalized(tx, edited.operation)) ? tokens : edited.before
}

async function finalizeInTransaction(
  tx: Transaction,
  { operation, vault, epoch, account, keyHash }: EditJob,
  memory: EditableMemory,
  { tokens, before }: { tokens: number; before: number },
): Promise<void> {
  const { id, session } = memory
  await finalizeEdit(tx, {
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
function debtChangeOf({ tier, session, consolidated }: EditableMemory, tokens: number): DebtChange {
  if (consolidated || session !== null || tier === 3) return {}
  return tier === 1 ? { rawTokens: tokens } : { tier2Tokens: tokens }
}

async function refuseDuplicateText(
  mongo: EditBackend['mongo'],
  query: Query,
  scope: Caller['scope'],
  content: { hash: Buffer; except: string },
): Promise<void> {
  const holders = await memoriesWithSameText(mongo, scope, content)
  const sessions = holders.flatMap(({ session }) => session ?? [])
  const epochs = await findSessionEpochs(query, scope, sessions)
  const isLive = ({ session, sessionEpoch }: (typeof holders)[number]) =>
    session === null || sessionEpoch === (epochs.get(session) ?? 0)
  if (!holders.some(isLive)) return
  throw new Refusal(
    'conflict',
    'Another memory has this text already',
    'Delete one of the two, or word them differently',
  )
}

async function embedIntoSpaces(
  { embedders, log }: EditBackend,
  { id, spaces }: EditableMemory,
  text: string,
): Promise<Map<string, Float32Array>> {
  const { embedders: ours, unavailable } = await resolveSpaceEmbedders(embedders, spaces)
  for (const { space, reason } of unavailable)
    log.warn({ memory: id, space, reason }, 'edit.space-lost')
  const vectors = await Promise.all(ours.map(embedder => embedder.embedTexts([text])))
  return new Map(ours.map((embedder, index) => [embedder.space, vectors[index]![0]!]))
}

const buildEditJob = (
  { scope, account, keyHash }: Caller,
  operation: string,
  id: string,
): EditJob => ({
  operation,
  vault: scope.vault,
  epoch: scope.epoch,
  account,
  keyHash: keyHash.toString('hex'),
  id,
})
