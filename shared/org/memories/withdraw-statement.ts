import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { idForPurpose, isUuid } from '#shared/core/ids.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import { activeOrgRedaction } from '#shared/org/base/redaction.ts'
import { isBlockedByRedaction, redactOrSkipText } from '#shared/privacy/apply-redaction.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import {
  ignoreMissing,
  mutateSharedMemory,
  toWriteId,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import { seesMemory } from '#shared/org/memories/shared-statements.ts'
import {
  dueWithdrawals,
  forgetStatement,
  listStatementsOfMemory,
  markWithdrawn,
  postponeWithdrawal,
  type SharedStatement,
} from '#shared/org/memories/shared-statements.postgres.ts'
import type { MemorySnapshot } from '#shared/org/memories/shared-writes.postgres.ts'
import type { Log } from '#shared/core/log.ts'

type WithdrawalBackend = SharedMemoryBackend & { log: Log }

/**
 * Takes back a statement. The member's list no longer has it when this resolves; what others see follows at once.
 * The memory is waited for only where the member sees it: otherwise the time would reveal whether more people said
 * the same.
 *
 * @throws Refusal `missing` when the member has no such statement; `unavailable` when a store is out of reach.
 */
export async function withdrawStatement(
  backend: WithdrawalBackend,
  member: MemberScope,
  id: string,
): Promise<void> {
  const scope = { org: member.org, member: member.memberId }
  const { query } = backend.postgres
  const statement = isUuid(id) ? await markWithdrawn(query, scope, id) : undefined
  if (!statement) throw refusal('missing', 'nothingShared')
  const orgVault = { org: member.org, vault: member.orgVault, epoch: member.orgEpoch }
  const isSeen = await seesMemory(backend, member, statement.memory).catch(() => false)
  const withdrawal = applyWithdrawal(backend, orgVault, statement)
  if (isSeen) return withdrawal
  withdrawal.catch((error: unknown) => logPostponed(backend, member.org, error))
}

/** The sweep goes on with the withdrawal. */
const logPostponed = ({ log }: Pick<WithdrawalBackend, 'log'>, org: string, err: unknown): void =>
  log.warn({ err, org }, 'withdrawal.postponed')

const dueMax = 100

/**
 * Goes on with withdrawals that were interrupted; a failed one waits until others were tried.
 *
 * @returns how many were finished.
 */
export async function finishWithdrawals(backend: WithdrawalBackend): Promise<number> {
  let finished = 0
  for (const { org, vault, epoch, ...statement } of await dueWithdrawals(
    backend.postgres.query,
    dueMax,
  )) {
    try {
      await applyWithdrawal(backend, { org, vault, epoch }, statement)
      finished++
    } catch (error) {
      logPostponed(backend, org, error)
      const isOutage = error instanceof Refusal && error.reason === 'unavailable'
      if (!isOutage) await postponeWithdrawal(backend.postgres.query, statement.id)
    }
  }
  return finished
}

/**
 * Changes the memory to what it is without a statement. The first write hides words that are taken back; only then
 * words of another member are embedded in their place, unless the redaction policy blocks them. Safe to run any
 * number of times.
 */
async function applyWithdrawal(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  statement: SharedStatement,
): Promise<void> {
  const { postgres } = backend
  const { author: actor, memory: id } = statement
  const [hiding, replacing] = ['withdraw', 'replace'].map(purpose =>
    idForPurpose(statement.id, purpose),
  ) as [string, string]
  const listOthers = () => listStatementsOfMemory(postgres.query, orgVault.org, id)
  const listAllowed = async () => {
    const redaction = await activeOrgRedaction(postgres.query, orgVault.org)
    return (await listOthers()).filter(
      ({ text }) => redactOrSkipText(redaction, text) !== undefined,
    )
  }
  const write = (
    operation: string,
    list: () => Promise<SharedStatement[]>,
    toNext: (now: MemorySnapshot, next: MemorySnapshot | null) => MemorySnapshot | null,
  ) =>
    mutateSharedMemory(
      backend,
      orgVault,
      { operation, actor, id, kind: 'withdraw' },
      async ({ memory }) => {
        if (!memory) return null
        const now = toSnapshot(memory)
        return toNext(now, withoutStatement(now, statement, await list()))
      },
    ).catch(ignoreMissing)
  // Where the text is to change, the memory waits for a person before it is embedded.
  await write(hiding, listOthers, (now, next) =>
    next && next.text !== now.text
      ? { ...now, pending: true, reviewed: false, confidence: next.confidence }
      : next,
  )
  const replace = (list: typeof listOthers) => write(replacing, list, (_, next) => next)
  await replace(listOthers).catch((error: unknown) => {
    if (!isBlockedByRedaction(error)) throw error
    return replace(listAllowed)
  })
  const writes = [hiding, replacing].map(operation => toWriteId({ operation, id }))
  await postgres.transaction(tx => forgetStatement(tx, orgVault.org, statement, writes))
}

/** Below the threshold of a review. */
const doubtfulConfidence = 0.5

/**
 * Returns a shared memory without a statement; null removes it.
 *
 * - Words of others, or of an admin, stay; the member is no longer among the authors.
 * - Words that another member repeated stay in that member's name.
 * - Words of the member that replaced another's give way to these, unseen until a person has decided: they may be
 *   untrue by now.
 * - Words of no one else are removed, also when a person had approved them.
 *
 * @param others the statements that were not taken back, oldest first
 */
export function withoutStatement(
  memory: MemorySnapshot,
  statement: SharedStatement,
  others: readonly SharedStatement[],
): MemorySnapshot | null {
  const { author } = statement
  const saysMore = others.some(one => one.author === author)
  const isItsWords = memory.author === author && memory.acquiredAt === statement.saidAt.getTime()
  const contributors = contributorsOf(memory).filter(one => saysMore || one !== author)
  if (memory.byHand || !isItsWords) return attributed(memory, contributors)
  // Outdated ones never were the words of the memory.
  const standing = others
    .filter(({ outdated }) => !outdated)
    .toSorted((one, other) => one.saidAt.getTime() - other.saidAt.getTime())
  const repeated = standing.filter(
    ({ action, recordedAt }) => action === 'NONE' && recordedAt > statement.recordedAt,
  )
  const newest = standing.at(-1)
  const isInItsWords = newest?.text === memory.text
  const heir =
    repeated.findLast(one => one.author !== author) ??
    repeated.at(-1) ??
    (isInItsWords ? newest : undefined)
  if (heir) return attributed(inNameOf(memory, heir), [...contributors, heir.author])
  if (!newest) return null
  const restored = { ...inNameOf(memory, newest), text: newest.text }
  const confidence = Math.min(memory.confidence, doubtfulConfidence)
  const authors = [...contributors, newest.author]
  return { ...attributed(restored, authors), confidence, reviewed: false, pending: true }
}

const contributorsOf = ({ origin, author }: MemorySnapshot): readonly string[] =>
  origin?.contributors ?? [author]

const inNameOf = (memory: MemorySnapshot, { author, saidAt }: SharedStatement): MemorySnapshot => ({
  ...memory,
  author,
  acquiredAt: saidAt.getTime(),
})

/** Sets the authors; the first and the last are among them. */
function attributed(memory: MemorySnapshot, contributors: readonly string[]): MemorySnapshot {
  const { origin, ...others } = memory
  const authors = [...new Set(contributors)]
  const known = (author: string): string => (authors.includes(author) ? author : authors.at(-1)!)
  if (authors.length === 0) return { ...others, author: formerMember }
  const author = known(memory.author)
  if (!origin) return { ...others, author }
  return {
    ...others,
    author,
    origin: { ...origin, author: known(origin.author), contributors: authors },
  }
}

/** The author of an admin's words once every member is gone from them. */
const formerMember = 'a member'
