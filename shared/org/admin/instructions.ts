import { mintId } from '#shared/core/ids.ts'
import type { Admin } from '#shared/access/admin.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isEmptyRule } from '#shared/org/base/rule-matching.ts'
import {
  digestOf,
  recordPolicyEvent,
  changePolicy,
  requireOrganization,
} from '#shared/org/base/policy-change.ts'
import {
  readInstructions,
  replaceRules,
  updateInstructions,
  type InstructionsRow,
  type InstructionRule,
} from '#shared/org/base/instructions.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

type OrgAdmin = { admin: Admin; org: string }

/**
 * The instructions of an organization: what the first pass is to extract.
 *
 * @throws Refusal `missing`.
 */
export async function getInstructions(
  { postgres }: { postgres: Postgres },
  { admin, org }: OrgAdmin,
): Promise<InstructionsRow> {
  await requireOrganization(postgres.query, admin, org)
  return readInstructions(postgres.query, org)
}

/** A rule to store; with the id of an existing rule it replaces that one. */
type RuleInput = { id?: string | undefined; match: string; note?: string | undefined }

export type InstructionsChange = {
  defaultOn?: boolean | undefined
  custom?: string | undefined
  /** All of them. */
  antiRules?: readonly RuleInput[] | undefined
  execRules?: readonly RuleInput[] | undefined
}

/**
 * Writes what is given and leaves the rest. Rules get ids; an id that names no rule of the
 * organization, or the same rule again, becomes another one.
 *
 * @throws Refusal `missing`; `invalid` for a rule that matches nothing.
 */
export const changeInstructions = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  { defaultOn, custom, antiRules, execRules }: InstructionsChange,
): Promise<InstructionsRow> =>
  changePolicy(backend, { admin, org }, async tx => {
    requireMatchWords(antiRules, 'anti_rules')
    requireMatchWords(execRules, 'exec_rules')
    const now = await readInstructions(tx.query, org)
    const unclaimedIds = new Set([...now.antiRules, ...now.execRules].map(({ id }) => id))
    // What is not written keeps its ids.
    for (const { id } of antiRules ? [] : now.antiRules) unclaimedIds.delete(id)
    for (const { id } of execRules ? [] : now.execRules) unclaimedIds.delete(id)
    const withId = ({ id, match, note }: RuleInput): InstructionRule => {
      const known = id?.toLowerCase()
      const isKnown = known !== undefined && unclaimedIds.delete(known)
      return { id: isKnown ? known : mintId(), match, note: note ?? '' }
    }
    await updateInstructions(tx, org, { defaultOn, custom })
    await replaceRules(tx, org, {
      anti: antiRules?.map(withId),
      exec: execRules?.map(withId),
    })
    const after = await readInstructions(tx.query, org)
    await recordPolicyEvent(
      tx,
      { admin, org },
      {
        action: 'instructions.changed',
        subject: after.org,
        before: toRecordedInstructions(now),
        after: toRecordedInstructions(after),
      },
    )
    return after
  })

/** Custom words and those of rules are not recorded; the digest differs where they do. */
const toRecordedInstructions = ({ defaultOn, custom, antiRules, execRules }: InstructionsRow) => ({
  default_on: defaultOn,
  custom_characters: custom.length,
  anti_rules: antiRules.map(({ id }) => id),
  exec_rules: execRules.map(({ id }) => id),
  sha256: digestOf([custom, antiRules, execRules]),
})

function requireMatchWords(rules: readonly RuleInput[] | undefined, field: string): void {
  const at = rules?.findIndex(isEmptyRule) ?? -1
  if (at < 0) return
  throw new Refusal('invalid', `${field}[${at}].match holds no words`, 'It would match nothing')
}
