import {
  memberScopeSql,
  toMemberScope,
  type MemberColumns,
} from '#shared/access/member-scope.postgres.ts'
import type { MemberScope } from '#shared/domain/member-scope.ts'
import type { StoragePolicy } from '#shared/domain/storage-policy.ts'
import type { TracePolicy } from '#shared/domain/trace-policy.ts'
import {
  toActiveRedaction,
  type RedactionPolicy,
  type StoredRedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'

/**
 * `vault`: opens one vault and acts for its account. `member`: opens a member's private vault and
 * what they may see of the organization's; `user`: the private vault alone.
 */
export type MemoryKeyKind = 'vault' | 'member' | 'user'

/** All that a request needs to know of its key, the vault and the account. */
export type KeyRow = {
  vault: string
  account: string
  kind: MemoryKeyKind
  /** The vault was created with its account: its keys act for the account. */
  isOwnerVault: boolean
  /** Hash of the key whose rate limits it shares; null: limits of its own. */
  limitedAs: Buffer | null
  /** Of a member key: what it may see of the shared memory. */
  memberScope: MemberScope | null
  /** Another key replaced it: it works until the end of its grace period. */
  isRotated: boolean
  epoch: number
  revision: number
  /** The embedding model whose space holds the vault; null: the default model's. */
  embeddingModel: string | null
  paymentMethod: string | null
  balance: number | null
  /** Operations of the vault that are accepted and not done. */
  pending: number
  /** How private data is handled in what the key stores; null: it is stored. */
  redaction: RedactionPolicy | null
  /** Retention in days; null: forever. */
  retentionDays: number | null
  /** What the traces of calls hold, and for how long. */
  traces: TracePolicy
  /** How exchanges are stored. */
  storage: StoragePolicy
  /** The vault may hold expired memories: they are removed before anything is read. */
  hasExpired: boolean
  rawUnits: number
  rawTokens: number
  tier2Count: number
  tier2Importance: number
  tier2Tokens: number
}

/** The columns that `keyRowColumns` selects. */
export type KeyColumns = {
  vault: string
  account: string
  kind: MemoryKeyKind
  owner: boolean
  limited_as: Buffer | null
  member: MemberColumns | null
  is_rotated: boolean
  epoch: number
  revision: string
  embeddings: string | null
  payment_method: string | null
  balance: string | null
  pending: number
  redaction: StoredRedactionPolicy | null
  retention_days: number | null
  traces: TracePolicy['mode']
  trace_days: number
  verbatim: boolean
  response_with_input: boolean
  has_expired: boolean | null
  raw_units: number
  raw_tokens: string
  tier2_count: number
  tier2_importance: number
  tier2_tokens: string
}

/** Of a statement in which `k` is a key, `v` its vault and `a` its account. */
export const keyRowColumns = `k.vault, k.account, k.kind, k.rotated_at is not null as is_rotated,
  k.limited_as,
  v.owner, v.epoch, v.revision, v.embeddings, v.pending,
  v.next_expiry <= clock_timestamp() as has_expired,
  v.raw_units, v.raw_tokens, v.tier2_count, v.tier2_importance, v.tier2_tokens,
  a.payment_method, a.balance, a.retention_days, a.traces, a.trace_days,
  a.verbatim, a.response_with_input,
  case when k.org is null then a.redaction
       else coalesce((select redaction from orgs where id = k.org), a.redaction)
  end as redaction,
  case when k.kind = 'member' then (${memberScopeSql}) end as member`

export function toKeyRow(row: KeyColumns): KeyRow {
  return {
    vault: row.vault,
    account: row.account,
    kind: row.kind,
    isOwnerVault: row.owner,
    limitedAs: row.limited_as,
    memberScope: row.member && toMemberScope(row.member),
    isRotated: row.is_rotated,
    epoch: row.epoch,
    revision: Number(row.revision),
    embeddingModel: row.embeddings,
    paymentMethod: row.payment_method,
    balance: row.balance === null ? null : Number(row.balance),
    pending: row.pending,
    redaction: toActiveRedaction(row.redaction),
    retentionDays: row.retention_days,
    traces: { mode: row.traces, days: row.trace_days },
    storage: { verbatim: row.verbatim, responseWithInput: row.response_with_input },
    hasExpired: row.has_expired ?? false,
    rawUnits: row.raw_units,
    rawTokens: Number(row.raw_tokens),
    tier2Count: row.tier2_count,
    tier2Importance: row.tier2_importance,
    tier2Tokens: Number(row.tier2_tokens),
  }
}
