import type { Schema } from '#shared/core/shape.ts'
import { readTextFile } from '#shared/core/text-file.ts'
import { noteMax } from '#shared/org/base/rule-matching.ts'
import type { OrgPolicy, PolicyRule } from '#shared/org/base/org-policy.postgres.ts'

/*
 * The prompts. The words of an organization's admin are part of the instructions. Words of members, memories, and tags with
 * their examples are data: JSON strings in a message of their own.
 */

/** `YYYY-MM-DD`, UTC. */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** The most facts of one call: a model that finds more is copying. */
export const factsMax = 50

const injectionNotice = readTextFile(new URL('prompts/injection-notice.txt', import.meta.url))

/** A prompt of `prompts/`. */
const readPrompt = (name: string): string =>
  readTextFile(new URL(`prompts/${name}.txt`, import.meta.url), { injectionNotice, factsMax })

const extractTask = readPrompt('extract')
/** Also what makes the instructions long enough (1,024 tokens) for providers to keep them as a prefix. */
const extractExamples = readPrompt('extract-examples')
const baseRetention = readPrompt('worth-sharing')
export const classifyInstructions = readPrompt('classify')
export const reconcileInstructions = readPrompt('reconcile')

/** The instructions of the first pass for one organization. */
export function extractInstructions(policy: OrgPolicy): string {
  const { defaultOn, custom, antiRules, execRules } = policy
  const parts = [
    extractTask,
    extractExamples,
    defaultOn && baseRetention,
    custom.trim() && `What this organization asks for:\n${custom.trim()}`,
    antiRules.length > 0 &&
      `Never store anything that one of these matches, in no wording, not even a part of it:\n${rulesAsJson(antiRules)}`,
    execRules.length > 0 &&
      `Of anything that one of these matches, store only a note of at most ${noteMax} characters that says \
what it was about, without figures, names of people or other particulars, and set "note":\n${rulesAsJson(execRules)}`,
  ]
  return parts.filter(part => part !== false && part !== '').join('\n\n')
}

const rulesAsJson = (rules: readonly PolicyRule[]): string =>
  rules.map(({ match, note }) => JSON.stringify(note ? { match, note } : { match })).join('\n')

/** The schema of an answer that is one list of rows with these fields, all of them required. */
export const rowsSchema = (name: string, fields: Record<string, Schema>): Schema => ({
  type: 'object',
  required: [name],
  additionalProperties: false,
  properties: {
    [name]: {
      type: 'array',
      items: {
        type: 'object',
        required: Object.keys(fields),
        additionalProperties: false,
        properties: fields,
      },
    },
  },
})
