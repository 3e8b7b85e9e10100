import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import { standingOf, type SharedMemory, type Standing } from '#shared/org/shared-memories.mongo.ts'
import { buryShared, relabelShared, replaceShared } from '#shared/org/shared-writes.mongo.ts'
import { embeddersOfOrg, orNothing } from '#shared/vault/base/shared-embedders.ts'
import { settleWrites, snapshotOf } from '#shared/org/shared-settle.ts'
import {
  findWrites,
  intend,
  pendingOf,
  type Action,
  type Intent,
  type Snapshot,
  type WriteKind,
} from '#shared/org/shared-writes.postgres.ts'
import { screened } from '#shared/privacy/redaction-policy.ts'
import { tokensOf } from '#shared/core/tokens.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetOf, tagsOf } from '#shared/domain/tags.ts'
import { redactionOfOrg } from '#shared/org/redaction.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/** Who changes something, and under which id: asking again under the same one changes once. */
export type By = {
  /** A UUIDv7 that stands for one change of one memory, or for one seeding. */
  operation: string
  /** An admin's email, or how the organization calls the member. */
  actor: string
}

export type Changing = Stores & { embedders: Embedders; now: () => number }

type Asked = By & { id: string; kind: WriteKind }

/** What a memory is to say, told what stands there now; null removes it. */
type Plan = (standing: Standing) => Snapshot | null | Promise<Snapshot | null>

/** Somebody else would have to change the same memory between each reading and writing of it. */
const triesMax = 8

/**
 * Makes one change of one shared memory: written down, done, and told. Done means one write to the
 * document that takes it only as it was read, so that two changes at once follow each other, and
 * whoever dies leaves a mark by which the next run, or the sweep, knows how far it came.
 *
 * @param plan says what is to become of it, or throws the refusal; called again when somebody else was
 *   faster.
 * @returns what stands there afterwards; null when nothing does.
 * @throws Refusal `invalid` when it brings words that the policy of the organization blocks.
 */
export async function changeShared(
  backend: Changing,
  place: OrgVault,
  asked: Asked,
  plan: Plan,
): Promise<SharedMemory | null> {
  const { mongo, postgres } = backend
  const mark = writeIdOf(asked)
  for (let tries = 0; tries < triesMax; tries++) {
    const known = (await findWrites(postgres.query, [mark])).get(mark)
    const standing = await standingOf(mongo, place, asked.id)
    if (known?.state === 'done') return standing?.memory ?? null
    if (!standing) throw noSuchShared()
    if (known && standing.marks.includes(mark)) {
      await settleWrites(backend, place, [known])
      return standing.memory
    }
    await settleEarlier(backend, place, asked.id, standing)
    const planned = await screenedPlan(backend, place, standing, await plan(standing))
    const intent = intentOf(place, asked, standing, planned)
    if (intent.actions.length === 0) return standing.memory
    const vectors = await vectorsOf(backend, place, standing, intent.after)
    if ((await intend(postgres.query, [intent])).has(mark)) continue
    if (!(await carryOut(backend, place, intent, { standing, vectors }))) continue
    await settleWrites(backend, place, [intent])
    if (!intent.after) return null
    const { version } = standing
    return { ...intent.after, id: asked.id, updatedAt: backend.now(), version: version + 1 }
  }
  throw new Refusal('conflict', 'Somebody else keeps changing this memory', 'Try again')
}

export const noSuchShared = (): Refusal =>
  new Refusal(
    'missing',
    'No such memory',
    'GET /v1/orgs/:orgId/memories lists those of the organization',
  )

/** The id of a change: the same for the same operation and memory. */
export const writeIdOf = ({ operation, id }: Pick<Asked, 'operation' | 'id'>): string =>
  copyIdOf(operation, 0, id)

/** What came about and was not told: told now, before marks of later writes push its own out. */
async function settleEarlier(
  backend: Changing,
  place: OrgVault,
  id: string,
  { marks }: Standing,
): Promise<void> {
  const pending = await pendingOf(backend.postgres.query, { org: place.org, memory: id })
  const applied = pending.filter(write => marks.includes(write.id))
  if (applied.length > 0) await settleWrites(backend, place, applied)
}

function intentOf(
  { org, vault, epoch }: OrgVault,
  { operation, actor, id, kind }: Asked,
  { memory }: Standing,
  planned: Snapshot | null,
): Intent {
  const before = memory && snapshotOf(memory)
  const after = planned && {
    ...planned,
    tags: tagsOf(planned.tags),
    tokens: tokensOf(planned.text),
  }
  const mark = writeIdOf({ operation, id })
  const actions = actionsOf(before, after)
  return { id: mark, org, vault, epoch, memory: id, kind, actor, actions, before, after }
}

/** Whatever words a change brings, the policy of the organization holds for them. */
async function screenedPlan(
  { postgres }: Changing,
  { org }: OrgVault,
  { memory }: Standing,
  planned: Snapshot | null,
): Promise<Snapshot | null> {
  if (!planned || planned.text === memory?.text) return planned
  const redaction = await redactionOfOrg(postgres.query, org)
  return { ...planned, text: screened(redaction, planned.text, 'text') }
}

/** How the audit calls the way from one to the other; nothing where they are the same. */
function actionsOf(before: Snapshot | null, after: Snapshot | null): Action[] {
  if (!before || !after) return before ? ['delete'] : after ? ['create'] : []
  const isUpdated =
    before.text !== after.text ||
    before.confidence !== after.confidence ||
    before.reviewed !== after.reviewed
  const isRetagged = tagSetOf(before.tags) !== tagSetOf(after.tags)
  return [...(isUpdated ? ['update' as const] : []), ...(isRetagged ? ['retag' as const] : [])]
}

/** Of a text that is new; null where there is none to embed. */
async function vectorsOf(
  backend: Changing,
  { org }: OrgVault,
  { memory }: Standing,
  planned: Snapshot | null,
): Promise<Record<string, Float32Array> | null> {
  if (!planned || planned.text === memory?.text) return null
  const [embedder, ...former] = await embeddersOfOrg(backend, org)
  const [vector] = await embedder.embedTexts([planned.text])
  const vectors = { [embedder.space]: vector! }
  for (const one of former) {
    const other = await orNothing(one.embedTexts([planned.text]))
    if (other) vectors[one.space] = other[0]!
  }
  return vectors
}

function carryOut(
  { mongo }: Changing,
  place: OrgVault,
  { id: mark, memory: id, after }: Intent,
  { standing, vectors }: { standing: Standing; vectors: Record<string, Float32Array> | null },
): Promise<boolean> {
  const step = { standing, mark }
  if (!after) return buryShared(mongo, place, id, step)
  if (!vectors) return relabelShared(mongo, place, { ...after, id }, step)
  return replaceShared(mongo, place, { ...after, id, vectors }, step)
}
