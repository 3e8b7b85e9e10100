import { createFillerSessions } from '#scripts/lab/bench/recall/filler.ts'
import list from '#scripts/lab/bench/harm/languages.json' with { type: 'json' }

/** Facts and messages of one language. The first half of each list is for tuning. */
type HarmLanguage = {
  name: string
  /** What a person tells, and two questions about it; `{}` is a name. */
  facts: [statement: string, question: string, otherWords: string][]
  smallTalk: string[]
  tasks: string[]
  /** Questions about the world. */
  general: string[]
}

const languages = list as unknown as readonly HarmLanguage[]

/** Fills `{}`; of each half. */
const names: readonly (readonly string[])[] = [
  ['Marta', 'Oskar', 'Ilona', 'Bruno', 'Selma'],
  ['Tamsin', 'Edgar', 'Noemi', 'Viktor', 'Leonie'],
]

export type HarmKind =
  | 'answerable'
  | 'unanswerable'
  | 'small talk'
  | 'task'
  | 'general'
  | 'agent turn'
  | 'agent question'
  | 'cross-language'

export type HarmCase = {
  kind: HarmKind
  text: string
  /** The memory that answers. */
  answer?: string
}

/** The earlier messages of one person, and the messages of now. */
export type HarmVault = {
  language: string
  told: { role: 'user' | 'assistant'; text: string; at: number }[]
  cases: HarmCase[]
}

export type Half = 'tuned' | 'heldout'

const DAY_MS = 86_400_000
const fillerSessions = 60
export const askedAt = Date.UTC(2026, 10, 20, 12)

/**
 * The vaults of one half: each person has stated half of the facts of a language, among unrelated
 * conversations, and is asked about all of them. What one half tells is unanswerable in the other.
 */
export function buildHarmVaults(half: Half): HarmVault[] {
  return languages.map(language => buildVault(language, half))
}

function buildVault({ name, facts, ...messages }: HarmLanguage, half: Half): HarmVault {
  const [own, other] = half === 'tuned' ? [0, 1] : [1, 0]
  const texts = facts.map(([statement], i) => statement.replace('{}', names[own]![i % 5]!))
  const isTold = (i: number): boolean => i < 5 === (own === 0)
  const halfOf = (list: readonly string[]): readonly string[] =>
    list.slice(own * (list.length / 2), other === 0 ? list.length : list.length / 2)
  const told = texts.flatMap((text, i) =>
    isTold(i) ? [{ role: 'user' as const, text, at: askedAt - (9 + 11 * i) * DAY_MS }] : [],
  )
  const filler = createFillerSessions(
    'topics',
    fillerSessions,
    ['user'],
    askedAt - 300 * DAY_MS,
    askedAt - DAY_MS,
  )
    .flatMap(({ at, turns }) =>
      turns.map(({ role, text }, i) => ({ role, text, at: at + i * 30_000 })),
    )
    .filter((turn): turn is HarmVault['told'][number] => turn.role !== 'system')
  const cases: HarmCase[] = facts.flatMap(([, ...questions], i) =>
    questions.map(text =>
      isTold(i) ? { kind: 'answerable', text, answer: texts[i]! } : { kind: 'unanswerable', text },
    ),
  )
  for (const text of halfOf(messages.smallTalk)) cases.push({ kind: 'small talk', text })
  for (const text of halfOf(messages.tasks)) cases.push({ kind: 'task', text })
  for (const text of halfOf(messages.general)) cases.push({ kind: 'general', text })
  if (name === 'english') cases.push(...agentTurns(own))
  else cases.push(...crossLanguage(texts, isTold))
  return { language: name, told: [...told, ...filler], cases }
}

/** Makes questions in English about facts of another language. */
const crossLanguage = (texts: readonly string[], isTold: (i: number) => boolean): HarmCase[] =>
  languages[0]!.facts.flatMap(([, text], i) =>
    isTold(i) ? [{ kind: 'cross-language' as const, text, answer: texts[i]! }] : [],
  )

const agentVerbs = [
  [
    'Fix the failing test in',
    'Rename the function in',
    'Add a unit test for',
    'Run the linter on',
    'Refactor',
  ],
  [
    'Revert the last change in',
    'Remove the dead code from',
    'Document',
    'Show me the diff of',
    'Bump the version in',
  ],
]
const agentObjects = [
  [
    'src/parser.ts',
    'the upload handler',
    'packages/core/index.js',
    'the retry loop',
    'lib/cache.go',
    'the migration script',
    'app/models/order.rb',
    'the CSV exporter',
  ],
  [
    'cmd/server/main.go',
    'the session store',
    'components/Table.tsx',
    'the rate limiter',
    'utils/dates.py',
    'the webhook queue',
    'Cargo.toml',
    'the settings page',
  ],
]

/** What people ask an agent of the files before it. */
const agentQuestions = [
  [
    'Why does our build fail?',
    'Why do our tests fail since this morning?',
    'Where is our retry loop?',
    'Is my branch up to date?',
    'Which of our dependencies are outdated?',
    'What does our migration script do?',
    'How many unit tests do we have?',
    'Warum schlägt unser Build fehl?',
  ],
  [
    'Why is our pipeline red?',
    'Can you see why our linter complains?',
    'Where do we handle uploads in this code?',
    'Does my commit break the parser?',
    'Which functions call our endpoint?',
    'What is wrong with my Dockerfile?',
    'Why do I get this exception in our module?',
    'Welche unserer Abhängigkeiten sind veraltet?',
  ],
]

const agentTurns = (half: number): HarmCase[] => [
  ...agentVerbs[half]!.flatMap(verb =>
    agentObjects[half]!.map(object => ({
      kind: 'agent turn' as const,
      text: `${verb} ${object}.`,
    })),
  ),
  ...agentQuestions[half]!.map(text => ({ kind: 'agent question' as const, text })),
]
