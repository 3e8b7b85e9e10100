import { globSync, readFileSync } from 'node:fs'

const root = new URL('../../../', import.meta.url)

export type Page = { file: string; text: string }

/** The pages in reading order; variables that a snippet exports are set in the following ones. */
export const pages: readonly Page[] = [
  'README.md',
  'api/README.md',
  ...globSync('api/guides/*.md', { cwd: root }).toSorted(),
  'api/client/README.md',
  'api/console/README.md',
  'workers/README.md',
  'shared/README.md',
  'scripts/README.md',
  ...globSync('scripts/guides/*.md', { cwd: root }).toSorted(),
  ...globSync('scripts/guides/trust/*.md', { cwd: root }).toSorted(),
  'scripts/lab/README.md',
  'scripts/publish/README.md',
  'test/README.md',
  'api/DECISIONS.md',
  'shared/DECISIONS.md',
  'shared/vault/DECISIONS.md',
  'shared/search/DECISIONS.md',
  'shared/org/DECISIONS.md',
  'CONTRIBUTING.md',
  'AGENTS.md',
  'SECURITY.md',
  'CHANGELOG.md',
].map(file => ({ file, text: readFileSync(new URL(file, root), 'utf8') }))

export const readPage = (file: string): string => pages.find(page => page.file === file)!.text

export type Snippet = {
  language: string
  /** The headings above it and its number under them. */
  title: string
  /** Name of the file to run it from, without its extension. */
  name: string
  text: string
  /** Why it is not run, from a comment `<!-- not run: … -->` before it. */
  reason: string | null
}

/** The fenced blocks of a page that have a language, in order. */
export function parseSnippets({ file, text }: Page): Snippet[] {
  const lines = text.split('\n')
  const found: Snippet[] = []
  let heading = ''
  for (let at = 0; at < lines.length; at++) {
    heading = /^#{1,3} (.*)/.exec(lines[at]!)?.[1] ?? heading
    const fence = /^```(\w*)$/.exec(lines[at]!)
    if (!fence) continue
    const end = lines.indexOf('```', at + 1)
    if (end === -1) throw new Error(`${file}:${at + 1}: the block does not end`)
    if (fence[1]) {
      found.push({
        language: fence[1],
        title: `${heading} (${file}:${at + 1})`,
        name: `snippet-${file.replaceAll(/\W/g, '-')}-${at + 1}`,
        text: lines.slice(at + 1, end).join('\n'),
        reason: /^<!-- not run: (.+) -->$/.exec(lines[at - 1] ?? '')?.[1] ?? null,
      })
    }
    at = end
  }
  return found
}

/** The text under a second-level heading. @throws Error when the page lacks it. */
export function readSection(page: string, heading: string): string {
  const [, found] = page.split(`\n## ${heading}\n`)
  if (found === undefined) throw new Error(`There is no section ${heading}`)
  return found.split('\n## ')[0]!
}

export type MarkdownTable = { head: string[]; rows: string[][] }

/** The tables of a text, with unparsed cells. */
export function parseTables(text: string): MarkdownTable[] {
  return text
    .split('\n\n')
    .map(part => part.split('\n').filter(line => line.startsWith('|')))
    .filter(lines => lines.length > 2)
    .map(([head, , ...rows]) => ({ head: cellsOf(head!), rows: rows.map(cellsOf) }))
}

const cellsOf = (line: string): string[] =>
  line
    .replace(/^\|\s*|\s*\|$/g, '')
    .split(/(?<!\\)\|/)
    .map(cell => cell.trim())

/** The texts in backticks. */
export const inlineCodeSpans = (text: string): string[] =>
  [...text.matchAll(/`([^`\n]+)`/g)].map(match => match[1]!)
