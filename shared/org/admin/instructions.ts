import { mintId } from '#shared/core/ids.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isEmptyRule } from '#shared/org/base/rule-matching.ts'
import { digestOf, type OrgAdmin, changePart } from '#shared/org/base/policy-change.ts'
import {
  readInstructions,
  replaceRules,
  updateInstructions,
  type InstructionsRow,
  type InstructionRule,
} from '#shared/org/base/org-policy.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** A rule to store; with the id of an existing rule it replaces that one. */
export type RuleInput = { id?: string | undefined; match: string; note?: string | undefined }

export type InstructionsChange = {
  defaultOn?: boolean | undefined
  custom?: string | undefined
  antiRules?: readonly RuleInput[] | undefined
  execRules?: readonly RuleInput[] | undefined
}

/**
 * Changes the given fields. Rules get ids; a rule with an unknown id, or one that is taken, gets a new one.
 *
 * @throws Refusal `missing`; `invalid` for a rule that matches nothing.
 */
export const changeInstructions = (
  backend: { postgres: Postgres },
  { admin, org }: OrgAdmin,
  { defaultOn, custom, antiRules, execRules }: InstructionsChange,
): Promise<InstructionsRow> =>
  changePart(
    backend,
    { admin, org },
    {
      action: 'instructions.changed',
      read: query => readInstructions(query, org),
      async write(tx, before) {
        requireMatchWords(antiRules, 'anti_rules')
        requireMatchWords(execRules, 'exec_rules')
        // Rules of a list that is not written keep their ids.
        const replaced = [antiRules && before.antiRules, execRules && before.execRules]
        const freeIds = new Set(replaced.flatMap(rules => rules?.map(({ id }) => id) ?? []))
        const withId = ({ id, match, note = '' }: RuleInput): InstructionRule => {
          const known = id?.toLowerCase()
          const isKnown = known !== undefined && freeIds.delete(known)
          return { id: isKnown ? known : mintId(), match, note }
        }
        await updateInstructions(tx, org, { defaultOn, custom })
        await replaceRules(tx, org, { anti: antiRules?.map(withId), exec: execRules?.map(withId) })
      },
      toRecorded,
    },
  )

/** The custom text and the words of rules are not recorded; the digest differs when they do. */
const toRecorded = ({ defaultOn, custom, antiRules, execRules }: InstructionsRow) => ({
  default_on: defaultOn,
  custom_characters: custom.length,
  anti_rules: antiRules.map(({ id }) => id),
  exec_rules: execRules.map(({ id }) => id),
  sha256: digestOf([custom, antiRules, execRules]),
})

/** @throws Refusal `invalid` for a rule that matches nothing. */
export function requireMatchWords(rules: readonly RuleInput[] | undefined, field: string): void {
  const at = rules?.findIndex(isEmptyRule) ?? -1
  if (at < 0) return
  throw new Refusal('invalid', `${field}[${at}].match holds no words`, 'It would match nothing')
}
