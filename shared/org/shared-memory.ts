import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { insertShared } from '#shared/org/shared-writes.mongo.ts'
import { embedEach } from '#shared/org/embed-each.ts'
import { changeShared, noSuchShared, type By, type Changing } from '#shared/org/shared-change.ts'
import { embeddersOfOrg } from '#shared/vault/base/shared-embedders.ts'
import { settleWrites, snapshotOf } from '#shared/org/shared-settle.ts'
import {
  findWrites,
  intend,
  type Intent,
  type WriteKind,
} from '#shared/org/shared-writes.postgres.ts'
import { isBlocked, screened, type Redaction } from '#shared/privacy/redaction-policy.ts'
import { tokensOf } from '#shared/core/tokens.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagsOf } from '#shared/domain/tags.ts'
import { redactionOfOrg } from '#shared/org/redaction.ts'

export type NewShared = {
  text: string
  tags: readonly string[]
  /** Of the tags, 0 to 1. */
  confidence: number
  author: string
  reviewed: boolean
  /** When it was said, epoch milliseconds. */
  acquiredAt: number
}

export type Added = {
  /** One for each that was stored, with its place among those given. */
  added: { index: number; memory: SharedMemory }[]
  /** Those without words, those that could not be embedded, and those that the policy blocks. */
  failed: { index: number; error: Refusal }[]
}

/**
 * Adds memories to what an organization shares, each with its audit event: `create`. The id of each is
 * `memoryIdOf(operation, index)`. A second run stores and tells nothing twice, whatever the first one
 * died of; what was removed meanwhile stays removed.
 *
 * @throws Refusal `unavailable` when a store is out of reach; when not a single text can be stored, why
 *   the first cannot: `upstream`, or `invalid` where it has no words or the policy blocks it.
 */
export async function addShared(
  backend: Changing,
  place: OrgVault,
  { operation, actor, items }: By & { items: readonly NewShared[] },
): Promise<Added> {
  const given = items.map((item, index) => givenOf(item, operation, index))
  const known = await findWrites(
    backend.postgres.query,
    given.map(({ mark }) => mark),
  )
  const isDone = ({ mark }: Given) => known.get(mark)?.state === 'done'
  const redaction = await redactionOfOrg(backend.postgres.query, place.org)
  const { allowed, blocked } = screenedOf(
    redaction,
    given.filter(item => !isDone(item)),
  )
  const { ready, failed: unembedded } = await embedded(backend, place.org, allowed)
  const failed = [...blocked, ...unembedded].toSorted((a, b) => a.index - b.index)
  if (failed.length > 0 && failed.length === given.length) throw failed[0]!.error
  if (ready.length > 0) await store(backend, place, { actor, ready })

  const refused = new Set(failed.map(({ index }) => index))
  const updatedAt = backend.now()
  const texts = new Map(allowed.map(item => [item.index, item]))
  const added = given
    .filter(({ index }) => !refused.has(index))
    .map(item => texts.get(item.index) ?? item)
    .map(({ index, content }) => ({ index, memory: { ...content, updatedAt, version: 1 } }))
  return { added, failed }
}

type Given = {
  index: number
  /** The write that adds it. */
  mark: string
  content: NewShared & { id: string; tokens: number }
}

function givenOf(item: NewShared, operation: string, index: number): Given {
  const id = memoryIdOf(operation, index)
  const content = { ...item, id, tags: tagsOf(item.tags), tokens: tokensOf(item.text) }
  return { index, mark: copyIdOf(operation, index, id), content }
}

const noWords = (): Refusal => new Refusal('invalid', 'text holds no words')

/** Private data is out before a text is embedded, or the text is. */
function screenedOf(
  redaction: Redaction | null,
  given: readonly Given[],
): { allowed: Given[]; blocked: Added['failed'] } {
  const allowed: Given[] = []
  const blocked: Added['failed'] = []
  for (const item of given) {
    if (item.content.text.trim() === '') {
      blocked.push({ index: item.index, error: noWords() })
      continue
    }
    try {
      const text = screened(redaction, item.content.text, 'text')
      allowed.push({ ...item, content: { ...item.content, text, tokens: tokensOf(text) } })
    } catch (error) {
      if (!isBlocked(error)) throw error
      blocked.push({ index: item.index, error })
    }
  }
  return { allowed, blocked }
}

type Ready = Given & { vectors: Record<string, Float32Array> }

async function embedded(
  backend: Changing,
  org: string,
  given: readonly Given[],
): Promise<{ ready: Ready[]; failed: Added['failed'] }> {
  const [embedder, ...former] = await embeddersOfOrg(backend, org)
  const texts = given.map(({ content }) => content.text)
  const outcomes = await embedEach(embedder, texts)
  const others = await Promise.all(
    former.map(async one => ({ space: one.space, outcomes: await embedEach(one, texts) })),
  )
  const ready: Ready[] = []
  const failed: Added['failed'] = []
  for (const [i, item] of given.entries()) {
    const outcome = outcomes[i]!
    if (outcome instanceof Refusal) failed.push({ index: item.index, error: outcome })
    else {
      const vectors = { [embedder.space]: outcome }
      for (const other of others) {
        const vector = other.outcomes[i]!
        if (!(vector instanceof Refusal)) vectors[other.space] = vector
      }
      ready.push({ ...item, vectors })
    }
  }
  return { ready, failed }
}

async function store(
  backend: Changing,
  { org, vault, epoch }: OrgVault,
  { actor, ready }: { actor: string; ready: readonly Ready[] },
): Promise<void> {
  const place = { org, vault, epoch }
  const intents = ready.map(({ mark, content }): Intent => {
    const what = { kind: 'add', actor, actions: ['create'] } as const
    const after = snapshotOf(content)
    return { id: mark, ...place, ...what, memory: content.id, before: null, after }
  })
  const documents = ready.map(({ mark, content, vectors }) => ({
    mark,
    content: { ...content, vectors },
  }))
  await intend(backend.postgres.query, intents)
  await insertShared(backend.mongo, place, documents)
  await settleWrites(backend, place, intents)
}

/** What is to become of a memory; what is left out stays. */
export type Change = {
  id: string
  text?: string
  tags?: readonly string[]
  confidence?: number
  reviewed?: boolean
  /** The words are an admin's: from now on no member's turn replaces them by itself. */
  byHand?: boolean
  /** The version it was read at: refused with `conflict` when somebody has changed it since. */
  ifVersion?: number
  kind?: WriteKind
}

/**
 * Changes a shared memory: a new text is embedded first, and nothing is changed when that fails. Told in
 * the audit as `update` for a new text or a new opinion of it, and as `retag` for new tags; a change
 * that changes nothing is told nowhere. A second run under the same operation changes nothing more.
 *
 * @returns the memory as it is now.
 * @throws Refusal `missing` when there is no such memory; `conflict` when it is not at `ifVersion`, or
 *   somebody keeps changing it; `invalid` for a text without words, or one that the policy blocks;
 *   `upstream` when the embedding model does not answer; `unavailable` when a store is out of reach.
 */
export async function updateShared(
  backend: Changing,
  place: OrgVault,
  { operation, actor, id, ifVersion, kind = 'edit', ...wanted }: By & Change,
): Promise<SharedMemory> {
  if (wanted.text?.trim() === '') throw noWords()
  const changed = await changeShared(
    backend,
    place,
    { operation, actor, id, kind },
    ({ memory }) => {
      if (!memory) throw noSuchShared()
      if (ifVersion !== undefined && memory.version !== ifVersion) {
        throw new Refusal('conflict', 'Somebody has changed this memory since', 'Read it again')
      }
      const { text = memory.text, confidence = memory.confidence } = wanted
      const { reviewed = memory.reviewed, tags = memory.tags } = wanted
      const { byHand = false } = wanted
      const opinion = { confidence, reviewed, ...(byHand && { byHand }) }
      return { ...snapshotOf(memory), text, tags, ...opinion }
    },
  )
  if (!changed) throw noSuchShared()
  return changed
}

/** Gives a shared memory other tags: all of them. As `updateShared`. */
export const retagShared = (
  backend: Changing,
  place: OrgVault,
  change: By & { id: string; tags: readonly string[] },
): Promise<SharedMemory> => updateShared(backend, place, change)

/**
 * Removes a shared memory: from the answer on no member sees it, and its id stays taken. Told in the
 * audit as `delete`. A second run under the same operation does nothing more.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict`, `unavailable` as `updateShared`.
 */
export async function deleteShared(
  backend: Changing,
  place: OrgVault,
  { operation, actor, id }: By & { id: string },
): Promise<void> {
  const change = { operation, actor, id, kind: 'delete' } as const
  await changeShared(backend, place, change, ({ memory }) => {
    if (!memory) throw noSuchShared()
    return null
  })
}
