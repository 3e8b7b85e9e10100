import { isDeepStrictEqual } from 'node:util'
import { findNextExpiry } from '#shared/vault/base/expiries.mongo.ts'
import {
  tombstoneDays,
  hasEarlierEpochs,
  newestEpoch,
  sessionsStored,
  countByTagSet,
  countUnconsolidated,
  type UnconsolidatedTotals,
} from '#shared/vault/restore/after-restore.mongo.ts'
import {
  readRestoredVault,
  repairVault,
  scheduleEarlierErasure,
  listVaultsPage,
  type InspectedVault,
  type RestoredVault,
} from '#shared/vault/restore/after-restore.postgres.ts'
import { notifyCleared } from '#shared/vault/base/erasures.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-state.postgres.ts'
import { takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** What a vault needed after its two stores were put back to different moments. */
export type VaultReconciliation = {
  vault: string
  /** As Postgres was put back, and as it is now: what MongoDB holds of later epochs can be seen again. */
  epoch: { before: number; after: number }
  /** Sessions whose epochs were behind, or that Postgres did not know. */
  sessions: number
  /** What waits for consolidation, as it was counted before and as it is. */
  waiting: { before: UnconsolidatedTotals; after: UnconsolidatedTotals }
  /** Something is left of what had been cleared, and is swept now. */
  leftovers: boolean
  /** Its counts were left alone, since work under way will move them: ask once more when that is done. */
  busy: boolean
}

const pageSize = 200
/** Vaults at once: each takes a few short looks at both stores. */
const concurrency = 8

/**
 * Brings every vault of Postgres in line with what MongoDB holds, after either was put back from a
 * backup. Run again it finds nothing to do; the service may run meanwhile.
 *
 * @param onVault is told of each vault, changed or not.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function reconcileStores(
  stores: Stores,
  { dryRun }: { dryRun: boolean },
  onVault: (vault: VaultReconciliation) => void,
): Promise<void> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const vaults = await listVaultsPage(stores.postgres.query, after, pageSize)
    const left = vaults.values()
    const lane = async (): Promise<void> => {
      for (const { id, unused } of left) {
        // Most vaults of a large service may never have been used, and need no transaction.
        if (unused && (await newestEpoch(stores.mongo, id)) === 0) continue
        const reconciled = await reconcileVault(stores, id, dryRun)
        if (reconciled) onVault(reconciled)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, lane))
    if (vaults.length < pageSize) return
    after = vaults.at(-1)!.id
  }
}

/** Whether a vault was not what Postgres thought. */
export const neededRepair = ({
  epoch,
  sessions,
  waiting,
  leftovers,
}: VaultReconciliation): boolean =>
  epoch.before !== epoch.after ||
  sessions > 0 ||
  leftovers ||
  !isDeepStrictEqual(waiting.before, waiting.after)

/** @returns undefined when it was given up for good. */
function reconcileVault(
  { postgres, mongo }: Stores,
  vault: string,
  dryRun: boolean,
): Promise<VaultReconciliation | undefined> {
  return postgres.transaction(async tx => {
    // In the order of everybody who changes a vault and what it holds.
    await takeVaultAdvisoryLock(tx, vault, 'contents')
    await lockVault(tx, vault)
    const before = await readRestoredVault(tx, vault)
    const newest = await newestEpoch(mongo, vault)
    if (before.retired) return undefined
    const found = await inspectVault(mongo, vault, before, newest)
    const leftovers = await hasEarlierEpochs(mongo, { vault, epoch: found.epoch })
    const raised = sessionsBehind(before, found)
    if (!dryRun) {
      await repairVault(tx, vault, found)
      if (leftovers) await scheduleEarlierErasure(tx, { vault, session: null, epoch: found.epoch })
      for (const { session, epoch } of raised) {
        if (epoch > 0) await scheduleEarlierErasure(tx, { vault, session, epoch })
      }
      await notifyCleared(tx, vault)
    }
    return {
      vault,
      epoch: { before: before.epoch, after: found.epoch },
      sessions: raised.length,
      waiting: { before: before.debt, after: found.debt },
      leftovers,
      busy: before.busy,
    }
  })
}

async function inspectVault(
  mongo: Stores['mongo'],
  vault: string,
  before: RestoredVault,
  newest: number,
): Promise<InspectedVault> {
  const epoch = Math.max(before.epoch, newest)
  const scope = { vault, epoch }
  const counted = !before.busy
  const [sessions, nextExpiry, days, waiting, tagSets] = await Promise.all([
    sessionsStored(mongo, scope),
    findNextExpiry(mongo, scope),
    tombstoneDays(mongo, vault),
    counted && !before.shared ? countUnconsolidated(mongo, scope, before.exchanges) : before.debt,
    counted && before.shared ? countByTagSet(mongo, scope) : null,
  ])
  const raised = epoch > before.epoch
  return {
    epoch,
    isEpochRaised: raised,
    debt: waiting,
    sessions,
    tagSets,
    nextExpiry,
    tombstoneDays: days,
  }
}

/** Those at a later epoch than Postgres thought, and those it did not know. */
const sessionsBehind = (before: RestoredVault, { sessions, isEpochRaised }: InspectedVault) =>
  sessions.filter(({ session, epoch }) => {
    const known = isEpochRaised ? undefined : before.sessions[session]
    return known === undefined || known < epoch
  })
