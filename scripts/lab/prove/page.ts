import type { Figure, SectionResult } from '#scripts/lab/prove/section.ts'

export type ProvenSection = SectionResult & {
  name: string
  description: string
  seconds: number
  facts: ProofFacts
}

export type ProofFacts = {
  commit: string
  date: Date
  seed: number
  command: string
  machine: string
}

export const isMissed = ({ value, most }: Figure): boolean => most !== undefined && !(value <= most)

/** Whether everything that is judged held. */
export const holds = ({ figures, faults }: SectionResult): boolean =>
  faults.length === 0 && !figures.some(isMissed)

const head = `# Proof

What \`scripts/lab/prove.ts\` found on two web and two worker processes on real databases. Every section tells its own run.

`

/**
 * A page in Markdown of what runs found.
 *
 * @param previous the page as it is, or an empty text; its sections stay where they were not run again
 * @param order names of all sections
 */
export function renderPage(
  previous: string,
  sections: readonly ProvenSection[],
  order: readonly string[],
): string {
  const parts = new Map(
    previous
      .split(/^(?=## )/m)
      .slice(1)
      .map(part => [/^## (\w+)/.exec(part)?.[1], part.trimEnd()]),
  )
  for (const section of sections) parts.set(section.name, renderSection(section))
  return `${head}${order.flatMap(name => parts.get(name) ?? []).join('\n\n')}\n`
}

function renderSection(section: ProvenSection): string {
  const { name, description, seconds, figures, faults, facts } = section
  const { command, date, commit, machine, seed } = facts
  return [
    `## ${name}: ${verdictOf(section)}`,
    '',
    `${description}.`,
    `\`${command}\` at commit ${commit}, ${date.toISOString().slice(0, 10)}, ${machine}, seed ${seed}: ${seconds} s.`,
    ...(figures.length > 0 ? ['', ...renderFigures(figures)] : []),
    ...(faults.length > 0 ? ['', ...faults.map(fault => `- ${fault}`)] : []),
    ...(section.notRun === undefined ? [] : ['', `Not run: ${section.notRun}.`]),
  ].join('\n')
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
