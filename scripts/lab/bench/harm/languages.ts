import list from '#scripts/lab/bench/harm/languages.json' with { type: 'json' }

/** Facts and messages of one language. Of each list the first half is for tuning. */
export type HarmLanguage = {
  name: string
  /** What a person tells, and two questions about it; `{}` is a name. */
  facts: [statement: string, question: string, otherWords: string][]
  smallTalk: string[]
  tasks: string[]
  /** Questions about the world. */
  general: string[]
}

export const languages = list as unknown as readonly HarmLanguage[]

/** Fills `{}`; of each half. */
export const names: readonly (readonly string[])[] = [
  ['Marta', 'Oskar', 'Ilona', 'Bruno', 'Selma'],
  ['Tamsin', 'Edgar', 'Noemi', 'Viktor', 'Leonie'],
]
