import { withEmbeddingTimeout } from '#shared/models/model-refusal.ts'
import { resolveSpaceEmbedders } from '#shared/models/space-embedders.ts'
import { refusal } from '#shared/core/refusal.ts'
import { emptyText, memoryContended } from '#shared/core/refusals.ts'
import { withKeyedMutex } from '#shared/core/keyed-mutex.ts'
import type { Caller } from '#shared/access/caller.ts'
import { expiryFor, isExpired, type Expiry } from '#shared/domain/expiry.ts'
import { isInCurrentEpoch, memoryNotFound } from '#shared/vault/read/lists/inspect.mongo.ts'
import { applyCurrentRetention, withExpiryProtocol } from '#shared/vault/base/expiry-protocol.ts'
import {
  findEditableMemory,
  memoriesWithSameText,
  replaceText,
  type EditableMemory,
  type TextReplacement,
} from '#shared/vault/edit/edits.mongo.ts'
import { forgetQuestions } from '#shared/vault/base/trace-questions.postgres.ts'
import { contentHash } from '#shared/vault/base/memories.mongo.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import {
  isEditFinalized,
  finalizeWrittenEdit,
  finalizeInTransaction,
  tokensBeforeEdit,
  contentsLock,
} from '#shared/vault/edit/finalize-edit.postgres.ts'
import {
  takeVaultAdvisoryLock,
  withoutClearedSessions,
} from '#shared/vault/base/vaults.postgres.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import { countTokensInSlices } from '#shared/core/tokens.ts'
import { withMemorySpan } from '#shared/core/trace.ts'
import type { EditJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'

export type Edit = {
  /** The UUIDv7 it is billed under; the same request sent again edits once. */
  operation: string
  /** In any case. */
  id: string
  text: string
  /** When it expires, in epoch milliseconds; null: never; undefined: no change. */
  expiresAt?: number | null | undefined
}

export type EditedMemory = Pick<EditableMemory, 'id' | 'tier' | 'at' | 'importance' | 'tokens'> &
  Expiry

type EditBackend = Stores & { embedders: Embedders; queue: Queue; log: Log }

/** By then the request has finalized its edit, or its process has died. */
const finalizeAfterSeconds = 5

/** Each retry needs another request that changed the memory between its read and its write. */
const triesMax = 5

/**
 * Gives a memory another text; its id, date, tier and importance stay. The text is embedded first, into every
 * space the memory has a vector in. Then one transaction, under the lock on the vault's contents, writes and
 * finalizes it (bill, debt, change log); a job finishes it when this process dies.
 *
 * @returns the memory as it is now.
 * @throws Refusal `invalid` for a text without words, or one that the policy blocks; `missing` when the vault
 *   has no such memory; `conflict` when another memory of the vault has this text; `upstream` when an embedding
 *   model does not answer; `unavailable` when a store is out of reach.
 */
export const editMemory = (
  backend: EditBackend,
  caller: Caller,
  edit: Edit,
): Promise<EditedMemory> =>
  withMemorySpan('update_memory', { vault: caller.scope.vault, ids: () => [edit.id] }, () =>
    redactAndEdit(backend, caller, edit),
  )

async function redactAndEdit(
  backend: EditBackend,
  caller: Caller,
  edit: Edit,
): Promise<EditedMemory> {
  if (edit.text.trim() === '') throw emptyText()
  const text = applyRedaction(caller.keyRow.redaction, edit.text, 'text')
  const id = edit.id.toLowerCase()
  const tokens = await countTokensInSlices(text)
  const content = { text, hash: contentHash(text), tokens }
  const job = buildEditJob(caller, edit.operation, id)
  for (let tries = 0; tries < triesMax; tries++) {
    const edited = await tryEdit(backend, caller, edit, { job, content })
    if (edited) return edited
  }
  throw memoryContended()
}

/** @returns null when the memory has changed between its read and its write. */
async function tryEdit(
  backend: EditBackend,
  caller: Caller,
  edit: Edit,
  { job, content }: { job: EditJob; content: Pick<TextReplacement, 'text' | 'hash' | 'tokens'> },
): Promise<EditedMemory | null> {
  const { postgres, mongo, queue } = backend
  const memory = await findEditableMemory(mongo, caller.scope, job.id)
  if (!memory || !(await isInCurrentEpoch(backend, caller.scope, memory))) throw memoryNotFound()
  if (memory.edited?.operation === job.operation) {
    await finalizeWrittenEdit(backend, job)
    return toEditedMemory(memory)
  }
  // The request was sent again; a later edit has replaced its text since, and stays.
  if (await isEditFinalized(postgres, job.operation)) {
    return { ...toEditedMemory(memory), tokens: content.tokens }
  }
  const duplicate = { hash: content.hash, except: job.id }
  await refuseDuplicateText(mongo, postgres.query, caller.scope, duplicate)
  const vectors = await embedIntoSpaces(backend, memory, content.text)
  // Its id makes a second try's job the same one.
  await queue.send(postgres, 'edit-settle', [
    { id: job.operation, data: job, priority: 0, afterSeconds: finalizeAfterSeconds },
  ])
  const expiry = requestedExpiry(caller, memory, edit)
  const replacement = { job, ...content, vectors, ...(expiry && { expiry }) }
  const work = { ...job, memories: expiry ? [expiry] : [] }
  const written = await withExpiryProtocol(backend, [work], () =>
    withKeyedMutex(`edit ${job.vault}`, () => writeEdit(backend, caller, memory, replacement)),
  )
  if (!written) return null
  return { ...toEditedMemory({ ...memory, ...expiryField(expiry) }), tokens: content.tokens }
}

/** @returns false when the memory has changed since it was read, or has vectors in other spaces. */
function writeEdit(
  backend: EditBackend,
  caller: Caller,
  read: EditableMemory,
  { job, ...content }: Omit<TextReplacement, 'operation' | 'debtTokensBefore'> & { job: EditJob },
): Promise<boolean> {
  return backend.postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, job.vault, contentsLock)
    // Edits of one vault wait for this lock: each reads what the one before it has written.
    const memory = await findEditableMemory(backend.mongo, caller.scope, read.id)
    // One that has expired since stays expired, even if the edit gives it a later expiry.
    if (!memory || isExpired(memory, Date.now())) throw memoryNotFound()
    if (String(memory.spaces) !== String(read.spaces)) return false
    const duplicate = { hash: content.hash, except: memory.id }
    await refuseDuplicateText(backend.mongo, tx.query, caller.scope, duplicate)
    const before = await tokensBeforeEdit(tx, memory)
    const next = { ...content, operation: job.operation, debtTokensBefore: before }
    if (!(await replaceText(backend.mongo, caller.scope, memory, next))) return false
    await forgetQuestions(tx.query, job.vault, [memory.hash])
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

/** @returns undefined where the edit does not change it. */
const requestedExpiry = (
  { keyRow }: Caller,
  { storedAt }: EditableMemory,
  { expiresAt }: Edit,
): Expiry | undefined =>
  expiresAt === undefined
    ? undefined
    : expiryFor({ requested: expiresAt, days: keyRow.retentionDays, storedAt })

async function refuseDuplicateText(
  mongo: EditBackend['mongo'],
  query: Query,
  scope: Caller['scope'],
  content: { hash: Buffer; except: string },
): Promise<void> {
  const holders = await memoriesWithSameText(mongo, scope, content)
  if ((await withoutClearedSessions(query, scope, holders)).length === 0) return
  throw refusal('conflict', 'sameText')
}

async function embedIntoSpaces(
  { embedders, log }: EditBackend,
  { id, spaces }: EditableMemory,
  text: string,
): Promise<Map<string, Float32Array>> {
  const { embedders: ours, unavailable } = await resolveSpaceEmbedders(embedders, spaces)
  for (const { space, reason } of unavailable)
    log.warn({ memory: id, space, reason }, 'edit.space-lost')
  const vectors = await Promise.all(
    ours.map(embedder => withEmbeddingTimeout(embedder.embedTexts([text]), embedder.model)),
  )
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
