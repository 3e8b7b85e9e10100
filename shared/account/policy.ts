import type { Backend } from '#shared/backend.ts'
import { decideRetention } from '#shared/erasure/retention.ts'
import { changePolicy, organizationOf } from '#shared/org/policy.ts'
import type { Admin } from '#shared/key/admin.ts'
import type { Query } from '#shared/postgres/connect.ts'
import {
  accountRedaction,
  orgRedaction,
  putAccountRedaction,
  putOrgRedaction,
} from '#shared/postgres/policies.ts'
import { accountRetention } from '#shared/postgres/retentions.ts'
import { usualKinds, type Kind } from '#shared/redaction/detectors.ts'
import { inForce, type Redaction, type StoredRedaction } from '#shared/redaction/policy.ts'

/** A decision about private data, and where it comes from. */
export type Policy = { redaction: StoredRedaction; from: 'default' | 'account' | 'organization' }

const undecided: StoredRedaction = { mode: 'off', kinds: usualKinds }

type Asked = { mode: StoredRedaction['mode']; kinds?: readonly Kind[] | undefined }

const decided = ({ mode, kinds = usualKinds }: Asked): StoredRedaction => ({ mode, kinds })

/** What an account decides for itself alone, too: for how many days it remembers; null: for good. */
export type AccountPolicy = Policy & { retentionDays: number | null }

/** What holds for an account: nothing is looked for, and all is kept, until it decides otherwise. */
export async function policyOfAccount(query: Query, account: string): Promise<AccountPolicy> {
  const redaction = await accountRedaction(query, account)
  const retentionDays = await accountRetention(query, account)
  return redaction
    ? { redaction, from: 'account', retentionDays }
    : { redaction: undecided, from: 'default', retentionDays }
}

export type AccountDecision = {
  /** The UUIDv7 under which a changed retention reaches what is there. */
  operation: string
  redaction: Asked | undefined
  retentionDays: number | null | undefined
}

/**
 * Decides for an account, in what is given; its members' organizations follow in what becomes of private
 * data, unless they decide for themselves.
 *
 * @returns whether the operation brings what is there in line.
 */
export const decideForAccount = (
  { postgres, queue }: Pick<Backend, 'postgres' | 'queue'>,
  account: string,
  { operation, redaction, retentionDays: days }: AccountDecision,
): Promise<boolean> =>
  postgres.transaction(async tx => {
    if (redaction) await putAccountRedaction(tx.query, account, decided(redaction))
    if (days === undefined) return false
    return decideRetention({ queue }, tx, { operation, account, days })
  })

/**
 * What holds for the members of an organization and for what they share.
 *
 * @throws Refusal `missing` when it is not the admin's.
 */
export async function policyOfOrg(
  { postgres }: Pick<Backend, 'postgres'>,
  { admin, org }: { admin: Admin; org: string },
): Promise<Policy> {
  const { id } = await organizationOf(postgres.query, admin, org)
  return policyInForce(postgres.query, id)
}

/** What holds for an organization, whoever asks. */
export async function policyInForce(query: Query, org: string): Promise<Policy> {
  const found = await orgRedaction(query, org)
  if (!found?.effective) return { redaction: undecided, from: 'default' }
  return { redaction: found.effective, from: found.own ? 'organization' : 'account' }
}

/**
 * Decides for an organization; null leaves it to the account it belongs to.
 *
 * @throws Refusal `missing` when it is not the admin's.
 */
export const decideForOrg = (
  backend: Pick<Backend, 'postgres'>,
  { admin, org }: { admin: Admin; org: string },
  asked: Asked | null,
): Promise<void> =>
  changePolicy(backend, { admin, org }, tx =>
    putOrgRedaction(tx.query, org, asked && decided(asked)),
  )

/** What holds for the shared memory of an organization at this moment. */
export async function redactionOfOrg(query: Query, org: string): Promise<Redaction | null> {
  return inForce((await orgRedaction(query, org))?.effective ?? null)
}
