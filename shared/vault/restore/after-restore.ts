import { isDeepStrictEqual } from 'node:util'
import { earliestExpiry } from '#shared/vault/base/expiries.mongo.ts'
import {
  burialDays,
  hasEarlier,
  newestEpoch,
  sessionsStored,
  tagSetsStored,
  waitingIn,
  type Waiting,
} from '#shared/vault/restore/after-restore.mongo.ts'
import {
  putBack,
  putRight,
  sweepEarlier,
  vaultsPage,
  type Found,
  type PutBack,
} from '#shared/vault/restore/after-restore.postgres.ts'
import { tellCleared } from '#shared/vault/base/erasures.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-lock.postgres.ts'
import { holdVault } from '#shared/vault/base/vaults.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** What a vault needed after its two stores were put back to different moments. */
export type Reconciled = {
  vault: string
  /** As Postgres was put back, and as it is now: what MongoDB holds of later epochs can be seen again. */
  epoch: { before: number; after: number }
  /** Sessions whose epochs were behind, or that Postgres did not know. */
  sessions: number
  /** What waits for consolidation, as it was counted before and as it is. */
  waiting: { before: Waiting; after: Waiting }
  /** Something is left of what had been cleared, and is swept now. */
  leftovers: boolean
  /** Its counts were left alone, since work under way will move them: ask once more when that is done. */
  busy: boolean
}

const pageSize = 200
/** Vaults at once: each takes a few short looks at both stores. */
const lanes = 8

/**
 * Brings every vault of Postgres in line with what MongoDB holds, after either was put back from a
 * backup. Run again it finds nothing to do; the service may run meanwhile.
 *
 * @param hear is told of each vault, changed or not.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function reconcileStores(
  stores: Stores,
  { dryRun }: { dryRun: boolean },
  hear: (vault: Reconciled) => void,
): Promise<void> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const vaults = await vaultsPage(stores.postgres.query, after, pageSize)
    const left = vaults.values()
    const lane = async (): Promise<void> => {
      for (const { id, unused } of left) {
        // Most vaults of a large service may never have been used, and need no transaction.
        if (unused && (await newestEpoch(stores.mongo, id)) === 0) continue
        const reconciled = await reconcileVault(stores, id, dryRun)
        if (reconciled) hear(reconciled)
      }
    }
    await Promise.all(Array.from({ length: lanes }, lane))
    if (vaults.length < pageSize) return
    after = vaults.at(-1)!.id
  }
}

/** Whether a vault was not what Postgres thought. */
export const wasBehind = ({ epoch, sessions, waiting, leftovers }: Reconciled): boolean =>
  epoch.before !== epoch.after ||
  sessions > 0 ||
  leftovers ||
  !isDeepStrictEqual(waiting.before, waiting.after)

/** @returns undefined when it was given up for good. */
function reconcileVault(
  { postgres, mongo }: Stores,
  vault: string,
  dryRun: boolean,
): Promise<Reconciled | undefined> {
  return postgres.transaction(async tx => {
    // In the order of everybody who changes a vault and what it holds.
    await holdVault(tx, vault, 'contents')
    await lockVault(tx, vault)
    const before = await putBack(tx, vault)
    const newest = await newestEpoch(mongo, vault)
    if (before.retired) return undefined
    const found = await look(mongo, vault, before, newest)
    const leftovers = await hasEarlier(mongo, { vault, epoch: found.epoch })
    const raised = raisedSessions(before, found)
    if (!dryRun) {
      await putRight(tx, vault, found)
      if (leftovers) await sweepEarlier(tx, { vault, session: null, epoch: found.epoch })
      for (const { session, epoch } of raised) {
        if (epoch > 0) await sweepEarlier(tx, { vault, session, epoch })
      }
      await tellCleared(tx, vault)
    }
    return {
      vault,
      epoch: { before: before.epoch, after: found.epoch },
      sessions: raised.length,
      waiting: { before: before.waiting, after: found.waiting },
      leftovers,
      busy: before.busy,
    }
  })
}

async function look(
  mongo: Stores['mongo'],
  vault: string,
  before: PutBack,
  newest: number,
): Promise<Found> {
  const epoch = Math.max(before.epoch, newest)
  const scope = { vault, epoch }
  const counted = !before.busy
  const [sessions, nextExpiry, days, waiting, tagSets] = await Promise.all([
    sessionsStored(mongo, scope),
    earliestExpiry(mongo, scope),
    burialDays(mongo, vault),
    counted && !before.shared ? waitingIn(mongo, scope, before.exchanges) : before.waiting,
    counted && before.shared ? tagSetsStored(mongo, scope) : null,
  ])
  const raised = epoch > before.epoch
  return { epoch, raised, waiting, sessions, tagSets, nextExpiry, burialDays: days }
}

/** Those at a later epoch than Postgres thought, and those it did not know. */
const raisedSessions = (before: PutBack, { sessions, raised }: Found) =>
  sessions.filter(({ session, epoch }) => {
    const known = raised ? undefined : before.sessions[session]
    return known === undefined || known < epoch
  })
