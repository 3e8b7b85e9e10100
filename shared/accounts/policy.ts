import { findTracePolicy, putTracePolicy } from '#shared/accounts/trace-policies.postgres.ts'
import { findStoragePolicy, putStoragePolicy } from '#shared/accounts/storage-policies.postgres.ts'
import type { StoragePolicy, StoragePolicyChange } from '#shared/domain/storage-policy.ts'
import type { TracePolicy, TracePolicyChange } from '#shared/domain/trace-policy.ts'
import { findUserPolicy, putUserPolicy } from '#shared/access/accounts.postgres.ts'
import { setAccountRetention } from '#shared/vault/delete/retention.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  findAccountRedaction,
  putAccountRedaction,
} from '#shared/accounts/redaction-policies.postgres.ts'
import { findAccountRetention } from '#shared/vault/delete/retentions.postgres.ts'
import {
  type EffectivePolicy,
  defaultRedaction,
  type RedactionInput,
  toStoredRedaction,
} from '#shared/privacy/redaction-decision.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

export type AccountPolicy = EffectivePolicy & {
  /** Days that memories are stored; null: without an end. */
  retentionDays: number | null
  /** Whether a request that names an unknown user creates them. */
  createUsers: boolean
  traces: TracePolicy
  storage: StoragePolicy
}

/** The policy of an account; by default nothing is redacted and memories do not expire. */
export async function readAccountPolicy(query: Query, account: string): Promise<AccountPolicy> {
  const redaction = await findAccountRedaction(query, account)
  const retentionDays = await findAccountRetention(query, account)
  const createUsers = await findUserPolicy(query, account)
  const traces = await findTracePolicy(query, account)
  const storage = await findStoragePolicy(query, account)
  const others = { retentionDays, createUsers, traces, storage }
  return redaction
    ? { redaction, decidedBy: 'account', ...others }
    : { redaction: defaultRedaction, decidedBy: 'default', ...others }
}

export type AccountPolicyChange = {
  /** The UUIDv7 of the operation that applies a changed retention to stored memories. */
  operation: string
  redaction: RedactionInput | undefined
  retentionDays: number | null | undefined
  createUsers: boolean | undefined
  traces: TracePolicyChange
  storage: StoragePolicyChange
}

/**
 * Changes what is given of an account's policy. Its organizations follow in redaction, unless they have a
 * redaction of their own.
 *
 * @returns whether the operation exists: stored memories get another end by it.
 */
export const changeAccountPolicy = (
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { account, actor }: { account: string; actor: string },
  { operation, redaction, retentionDays: days, createUsers, traces, storage }: AccountPolicyChange,
): Promise<boolean> =>
  postgres.transaction(async tx => {
    const redactionChanged =
      redaction !== undefined &&
      (await putAccountRedaction(tx.query, account, toStoredRedaction(redaction)))
    const usersChanged =
      createUsers !== undefined && (await putUserPolicy(tx, account, createUsers))
    const tracesChanged = await putTracePolicy(tx.query, account, traces)
    const storageChanged = await putStoragePolicy(tx.query, account, storage)
    const retention =
      days === undefined
        ? 'unchanged'
        : await setAccountRetention({ queue }, tx, { operation, account, days })
    const settingsChanged = redactionChanged || usersChanged || tracesChanged || storageChanged
    if (settingsChanged || retention !== 'unchanged') {
      const event = { account, actor, action: 'policy.changed', subject: 'account' } as const
      await recordAccountEvent(tx, event)
    }
    return retention === 'accepted'
  })
