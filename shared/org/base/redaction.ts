import type { Admin } from '#shared/access/admin.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { changePolicy } from '#shared/org/base/policy-change.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  defaultRedaction,
  toActiveRedaction,
  toStoredRedaction,
  type EffectivePolicy,
  type RedactionInput,
  type RedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'
import { findOrgRedaction, putOrgRedaction } from '#shared/org/base/org-policy.postgres.ts'

/** Reads the effective policy of an organization, for its members and its shared memories. */
export async function effectiveOrgPolicy(query: Query, org: string): Promise<EffectivePolicy> {
  const redaction = await findOrgRedaction(query, org)
  if (!redaction?.effective) return { redaction: defaultRedaction, decidedBy: 'default' }
  return { redaction: redaction.effective, decidedBy: redaction.own ? 'organization' : 'account' }
}

/**
 * Changes the redaction of an organization; with null that of its account applies.
 *
 * @throws Refusal `missing`.
 */
export const changeOrgPolicy = (
  backend: { postgres: Postgres },
  { admin, org }: { admin: Admin; org: string },
  redaction: RedactionInput | null,
): Promise<void> =>
  changePolicy(backend, { admin, org }, async tx => {
    const stored = redaction && toStoredRedaction(redaction)
    if (!(await putOrgRedaction(tx.query, org, stored))) return
    const { account, email: actor } = admin
    const subject = org.toLowerCase()
    await recordAccountEvent(tx, { account, actor, action: 'policy.changed', subject })
  })

export async function activeOrgRedaction(
  query: Query,
  org: string,
): Promise<RedactionPolicy | null> {
  return toActiveRedaction((await findOrgRedaction(query, org))?.effective ?? null)
}
