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
import { lockVault, takeVaultAdvisoryLock } from '#shared/vault/base/vaults.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** The differences of a vault after its two stores were restored to different times. */
export type VaultReconciliation = {
  vault: string
  /** In the restored Postgres, and now: memories of later epochs in MongoDB are visible again. */
  epoch: { before: number; after: number }
  /** Number of sessions that Postgres did not have, or with an earlier epoch. */
  sessions: number
  /** Totals of unconsolidated memories, before and now. */
  waiting: { before: UnconsolidatedTotals; after: UnconsolidatedTotals }
  /** Memories of cleared epochs exist; they are swept now. */
  leftovers: boolean
  /** Operations are under way that will change the totals, so they were not corrected: run it again later. */
  busy: boolean
}

const pageSize = 200
/** Concurrent vaults: each needs a few short queries in both stores. */
const concurrency = 8

/**
 * Sets every vault in Postgres to what MongoDB has, after either was restored from a backup. A second run
 * changes nothing; the service may be running.
 *
 * @param onVault called for each vault, changed or not
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
    const remainingVaults = vaults.values()
    const lane = async (): Promise<void> => {
      for (const { id, unused } of remainingVaults) {
        // A vault that was never used needs no transaction; in a large service most may be.
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

/** Whether Postgres and MongoDB differed. */
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

/** @returns undefined for a retired vault. */
function reconcileVault(
  { postgres, mongo }: Stores,
  vault: string,
  dryRun: boolean,
): Promise<VaultReconciliation | undefined> {
  return postgres.transaction(async tx => {
    // In the order in which all writers take these locks.
    await takeVaultAdvisoryLock(tx, vault, 'contents')
    await lockVault(tx, vault)
    const before = await readRestoredVault(tx, vault)
    const newest = await newestEpoch(mongo, vault)
    if (before.retired) return undefined
    const inspection = await inspectVault(mongo, vault, before, newest)
    const leftovers = await hasEarlierEpochs(mongo, { vault, epoch: inspection.epoch })
    const raised = sessionsBehind(before, inspection)
    if (!dryRun) {
      await repairVault(tx, vault, inspection)
      if (leftovers)
        await scheduleEarlierErasure(tx, { vault, session: null, epoch: inspection.epoch })
      for (const { session, epoch } of raised) {
        if (epoch > 0) await scheduleEarlierErasure(tx, { vault, session, epoch })
      }
      await notifyCleared(tx, vault)
    }
    return {
      vault,
      epoch: { before: before.epoch, after: inspection.epoch },
      sessions: raised.length,
      waiting: { before: before.debt, after: inspection.debt },
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

/** Sessions with a later epoch than in Postgres, and sessions that Postgres does not have. */
const sessionsBehind = (before: RestoredVault, { sessions, isEpochRaised }: InspectedVault) =>
  sessions.filter(({ session, epoch }) => {
    const known = isEpochRaised ? undefined : before.sessions[session]
    return known === undefined || known < epoch
  })
