import type { ProfileKind } from '#shared/search/profile/rules/statement.ts'

/** How sentences of one kind begin in one language, as its table has it. */
export type RuleRow = {
  kind: ProfileKind
  /** Words of which every sentence of the rule has one, in lower case: the others are not tried. */
  cues: string
  /**
   * A pattern of the sentence in lower case, from the beginning of a word on. `{x}` is the value,
   * `{kin}` the subject among the people of the language, `{end}` the end of a word.
   */
  pattern: string
  /** What is replaced by a later statement; `{subject}` and `{value}` stand for the groups. */
  subject?: string
  /** In place of what was found, where the subject has it all. */
  value?: string
  /** The value is a name: it begins with a capital letter, or all of the sentence is in lower case. */
  isName?: boolean
  /** The value has a number or the name of a month. */
  isDate?: boolean
  /** What it says holds no longer. */
  ends?: { kind: ProfileKind; subject: string }
}

export type Rule = Omit<RuleRow, 'pattern' | 'cues'> & { pattern: RegExp }

/** The rules of a language by each of their cues. */
export type RuleTable = ReadonlyMap<string, readonly Rule[]>

/** All but marks that end it, in any script; bounded, so that matching stays linear. */
const value = String.raw`(?<value>[^\s,;:!?.()\[\]"“”<>][^\n,;:!?()\[\]"“”<>]{0,60})`

/**
 * Letters are written as a range of the Latin ones: compiling a pattern with classes of Unicode takes ten
 * milliseconds.
 *
 * @param kin the people and animals that belong to a person, as alternatives of a pattern
 */
export function compileRules(kin: string, rows: readonly RuleRow[]): [string, Rule][] {
  return rows.flatMap(({ cues, pattern, ...rest }) => {
    const source = pattern
      .replaceAll('{x}', value)
      .replaceAll('{kin}', `(?<subject>${kin})`)
      .replaceAll('{end}', '(?![a-z0-9ß-ɏ])')
    const rule = { ...rest, pattern: new RegExp(`(?<![a-z0-9ß-ɏ])(?:${source})`, 'dg') }
    return cues.split(' ').map((cue): [string, Rule] => [cue, rule])
  })
}

/** The rules of several languages by their cues. */
export const joinRules = (...languages: readonly (readonly [string, Rule][])[]): RuleTable =>
  new Map(
    [...Map.groupBy(languages.flat(), ([cue]) => cue)].map(([cue, rules]) => [
      cue,
      [...new Set(rules.map(([, rule]) => rule))],
    ]),
  )
