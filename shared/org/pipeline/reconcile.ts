import { Refusal } from '#shared/core/errors.ts'
import { memoryIdOf, purposeIdOf } from '#shared/core/ids.ts'
import type { Asking } from '#shared/org/pipeline/ask.ts'
import { currentTags, decideAbout } from '#shared/org/pipeline/decide.ts'
import { reviewThreshold } from '#shared/org/pipeline/classify.ts'
import type { By } from '#shared/org/shared-change.ts'
import { addShared, updateShared, type Change, type NewShared } from '#shared/org/shared-memory.ts'
import { policyOf, type OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import {
  findTurn,
  finishTurn,
  holdTurn,
  withdrawDecision,
  writePasses,
  type Decision,
  type TaggedFact,
  type TurnRow,
} from '#shared/org/org-turns.postgres.ts'
import { isBlocked } from '#shared/privacy/redaction-policy.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'
import type { Log } from '#shared/core/log.ts'

type Reconciling = Asking & {
  mongo: Mongo
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  now: () => number
  log: Log
}

/**
 * The third pass: compares facts with what is shared already, leaves the decision, and carries it out,
 * with the member as the actor of every change. Safe to run any number of times: a decision that has
 * been written is carried out as it was made, each change once. One that somebody's edit has overtaken
 * is withdrawn and made anew.
 *
 * @throws Refusal as `extractFacts`; `conflict` when the shared memory keeps changing meanwhile.
 */
export async function reconcileFacts(
  backend: Reconciling,
  job: OrgTurnJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres } = backend
  const turn = await findTurn(postgres.query, job.turn)
  const policy = await policyOf(postgres.query, job.org)
  if (!turn?.pass2 || !policy || turn.finished) return
  const facts = turn.pass2
  const decisions = turn.pass3 ?? (await decide(backend, { turn, policy, facts }, signal))
  if (!decisions) return
  const decided = { turn, policy, facts, decisions }
  try {
    // Another worker at the same turn looks like somebody's edit until its change is known: look again.
    await carryOut(backend, decided, signal).catch((error: unknown) => {
      if (!isOvertaken(error)) throw error
      return carryOut(backend, decided, signal)
    })
  } catch (error) {
    if (isOvertaken(error)) await postgres.transaction(tx => withdrawDecision(tx, turn.id))
    throw error
  }
  await postgres.transaction(tx => finishTurn(tx, turn.id))
}

type Deciding = { turn: TurnRow; policy: OrgPolicy; facts: readonly TaggedFact[] }

/** @returns undefined once the turn is gone. */
async function decide(
  backend: Reconciling,
  { turn, policy, facts }: Deciding,
  signal: AbortSignal,
): Promise<Decision[] | undefined> {
  const outcomes = await decideAbout(backend, { turn, policy, facts }, signal)
  const seed = seedOf(turn, outcomes)
  let added = 0
  const pass3 = outcomes.map((decision): Decision => {
    if (decision.action !== 'ADD') return decision
    return { ...decision, mem_id: memoryIdOf(seed, added++) }
  })
  return backend.postgres.transaction(async tx => {
    const held = await holdTurn(tx, turn.id)
    if (!held) return undefined
    if (held.pass3) return held.pass3
    await writePasses(tx, turn.id, { pass3 })
    return pass3
  })
}

/** What the ids of added memories are made of: others for another decision about the same turn. */
function seedOf({ id }: Pick<TurnRow, 'id'>, decisions: readonly Decision[]): string {
  const added = decisions.filter(({ action }) => action === 'ADD').map(({ text }) => text)
  return purposeIdOf(id, `shared ${JSON.stringify(added)}`)
}

type Decided = Deciding & { decisions: readonly Decision[] }

async function carryOut(
  backend: Reconciling,
  decided: Decided,
  signal: AbortSignal,
): Promise<void> {
  const { turn, policy } = decided
  const place = { org: policy.org, vault: policy.vault, epoch: policy.epoch }
  for (const change of updatesOf(decided)) {
    signal.throwIfAborted()
    await updateShared(backend, place, change).catch(leaveOut)
  }
  const items = additionsOf(decided)
  if (items.length === 0) return
  signal.throwIfAborted()
  const by = { operation: seedOf(turn, decided.decisions), actor: turn.author }
  const added = await addShared(backend, place, { ...by, items }).catch(leaveOut)
  const failed = added?.failed.find(({ error }) => !isBlocked(error))
  if (failed) throw failed.error
}

/** What the policy has begun to block since it was found is not shared. */
function leaveOut(error: unknown): undefined {
  if (!isBlocked(error)) throw error
}

const updatesOf = ({ turn, facts, decisions }: Decided): (By & Change)[] =>
  decisions.flatMap(({ action, text, mem_id: id, version }, index) => {
    if (action !== 'UPDATE' || id === null || version === undefined) return []
    const { confidence } = facts[index]!
    return [
      {
        operation: purposeIdOf(turn.id, `update ${id} at ${version}`),
        actor: turn.author,
        id,
        text,
        ifVersion: version,
        // A doubt about the new words is a doubt about the memory.
        ...(confidence < reviewThreshold && { confidence }),
      },
    ]
  })

/** Surely below the threshold, and not what is least sure. */
const contested = 0.5

/** In the order that their ids were made in. */
const additionsOf = ({ turn, policy, facts, decisions }: Decided): NewShared[] =>
  decisions.flatMap(({ action, text, replaces }, index) => {
    if (action !== 'ADD') return []
    const fact = facts[index]!
    return [
      {
        text,
        tags: currentTags(policy, fact),
        // However sure its tags are: whether it replaces the other one is for a person to say.
        confidence: replaces === undefined ? fact.confidence : Math.min(fact.confidence, contested),
        author: turn.author,
        reviewed: false,
        acquiredAt: turn.saidAt.getTime(),
      },
    ]
  })

/** The memory was changed or removed between the decision and its execution. */
const isOvertaken = (error: unknown): boolean =>
  error instanceof Refusal && (error.reason === 'conflict' || error.reason === 'missing')
