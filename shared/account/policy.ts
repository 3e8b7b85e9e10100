import type { Backend } from '#shared/backend.ts'
import { changePolicy, organizationOf } from '#shared/org/policy.ts'
import type { Admin } from '#shared/key/admin.ts'
import type { Query } from '#shared/postgres/connect.ts'
import {
  accountRedaction,
  orgRedaction,
  putAccountRedaction,
  putOrgRedaction,
} from '#shared/postgres/policies.ts'
import { usualKinds, type Kind } from '#shared/redaction/detectors.ts'
import { inForce, type Redaction, type StoredRedaction } from '#shared/redaction/policy.ts'

/** A decision about private data, and where it comes from. */
export type Policy = { redaction: StoredRedaction; from: 'default' | 'account' | 'organization' }

const undecided: StoredRedaction = { mode: 'off', kinds: usualKinds }

type Asked = { mode: StoredRedaction['mode']; kinds?: readonly Kind[] | undefined }

const decided = ({ mode, kinds = usualKinds }: Asked): StoredRedaction => ({ mode, kinds })

/** What holds for an account: nothing is looked for until it decides otherwise. */
export async function policyOfAccount(query: Query, account: string): Promise<Policy> {
  const redaction = await accountRedaction(query, account)
  return redaction ? { redaction, from: 'account' } : { redaction: undecided, from: 'default' }
}

/** Decides for an account; its members' organizations follow unless they decide for themselves. */
export async function decideForAccount(query: Query, account: string, asked: Asked): Promise<void> {
  await putAccountRedaction(query, account, decided(asked))
}

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
  const found = await orgRedaction(postgres.query, id)
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
