import { mintId } from '#shared/core/ids.ts'
import type { Admin } from '#shared/access/admin.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isWordless } from '#shared/org/rules.ts'
import { changePolicy, organizationOf } from '#shared/org/policy.ts'
import {
  readInstructions,
  replaceRules,
  updateInstructions,
  type InstructionsRow,
  type Rule,
} from '#shared/org/instructions.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

type Acting = { admin: Admin; org: string }

/**
 * What an organization wants kept.
 *
 * @throws Refusal `missing`.
 */
export async function instructionsOf(
  { postgres }: { postgres: Postgres },
  { admin, org }: Acting,
): Promise<InstructionsRow> {
  await organizationOf(postgres.query, admin, org)
  return readInstructions(postgres.query, org)
}

/** A rule as it is written; with the id of one that is there it stays that one. */
type WrittenRule = { id?: string | undefined; match: string; note?: string | undefined }

export type InstructionsChange = {
  defaultOn?: boolean | undefined
  custom?: string | undefined
  /** All of them. */
  antiRules?: readonly WrittenRule[] | undefined
  execRules?: readonly WrittenRule[] | undefined
}

/**
 * Writes what is given and leaves the rest. Rules get ids; an id that names no rule of the
 * organization, or the same rule again, becomes another one.
 *
 * @throws Refusal `missing`; `invalid` for a rule that matches nothing.
 */
export const changeInstructions = (
  backend: { postgres: Postgres },
  { admin, org }: Acting,
  { defaultOn, custom, antiRules, execRules }: InstructionsChange,
): Promise<InstructionsRow> =>
  changePolicy(backend, { admin, org }, async tx => {
    requireWords(antiRules, 'anti_rules')
    requireWords(execRules, 'exec_rules')
    const now = await readInstructions(tx.query, org)
    const free = new Set([...now.antiRules, ...now.execRules].map(({ id }) => id))
    // What is not written keeps its ids.
    for (const { id } of antiRules ? [] : now.antiRules) free.delete(id)
    for (const { id } of execRules ? [] : now.execRules) free.delete(id)
    const identified = ({ id, match, note }: WrittenRule): Rule => {
      const known = id?.toLowerCase()
      const kept = known !== undefined && free.delete(known)
      return { id: kept ? known : mintId(), match, note: note ?? '' }
    }
    await updateInstructions(tx, org, { defaultOn, custom })
    await replaceRules(tx, org, {
      anti: antiRules?.map(identified),
      exec: execRules?.map(identified),
    })
    return readInstructions(tx.query, org)
  })

function requireWords(rules: readonly WrittenRule[] | undefined, field: string): void {
  const at = rules?.findIndex(isWordless) ?? -1
  if (at < 0) return
  throw new Refusal('invalid', `${field}[${at}].match holds no words`, 'It would match nothing')
}
