import type { Figure, SectionResult } from '#scripts/prove/section.ts'

export type ProvenSection = SectionResult & { name: string; description: string; seconds: number }

export type ProofFacts = {
  commit: string
  date: Date
  seed: number
  minutes: number
  /** Requests a second of the load. */
  rate: number
  machine: string
}

export const isMissed = ({ value, most }: Figure): boolean => most !== undefined && !(value <= most)

/** Whether everything that is judged held. */
export const holds = ({ figures, faults }: SectionResult): boolean =>
  faults.length === 0 && !figures.some(isMissed)

/** A page in Markdown of what a whole run found. */
export function renderPage(
  { commit, date, seed, minutes, rate, machine }: ProofFacts,
  sections: readonly ProvenSection[],
): string {
  const parts = sections.map(section =>
    [
      `## ${section.name}: ${verdictOf(section)}`,
      '',
      `${section.description}. ${section.seconds} s.`,
      '',
      ...(section.figures.length > 0 ? renderFigures(section.figures) : []),
      ...(section.faults.length > 0 ? ['', ...section.faults.map(fault => `- ${fault}`)] : []),
      ...(section.notRun === undefined ? [] : [`Not run: ${section.notRun}.`]),
      '',
    ].join('\n'),
  )
  const head = [
    '# Proof',
    '',
    `Made by \`node scripts/prove.ts --minutes ${minutes} --rate ${rate}\` on ${date.toISOString().slice(0, 10)} at commit ${commit}, ${machine}, seed ${seed}.`,
    'Two web and two worker processes on real databases; every figure is of this one run.',
    '',
  ].join('\n')
  return `${head}\n${parts.join('\n')}`
}

const verdictOf = (section: SectionResult): string =>
  section.notRun === undefined ? (holds(section) ? 'held' : 'BROKEN') : 'not run'

const renderFigures = (figures: readonly Figure[]): string[] => [
  '| What | Figure | At most |',
  '|---|---|---|',
  ...figures.map(({ name, value, unit = '', most }) =>
    `| ${name} | ${formatNumber(value)} ${unit} | ${most ?? ''} |`.replaceAll(/ +\|/g, ' |'),
  ),
]

export const formatNumber = (value: number): string =>
  Number.isInteger(value) ? value.toLocaleString('en') : value.toPrecision(3)
