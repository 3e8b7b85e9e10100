import { appendFileSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { stateFolder } from './files.ts'

/** What a hook has done; texts are never in it. */
export type JournalEntry = {
  at: string
  client: string
  what: 'recalled' | 'nothing recalled' | 'stored' | 'failed'
  repository?: string
  session?: string
  /** Characters of the block, or of the exchange. */
  characters?: number
  error?: string
}

const journalBytes = 256 * 1024
const journalPath = (): string => join(stateFolder(), 'journal.jsonl')

/** Appends to the journal, of which the last 256 to 512 KiB are kept. */
export function record(entry: Omit<JournalEntry, 'at'>): void {
  const path = journalPath()
  try {
    mkdirSync(stateFolder(), { recursive: true, mode: 0o700 })
    const line = `${JSON.stringify({ at: new Date().toISOString(), ...entry })}\n`
    appendFileSync(path, line, { mode: 0o600 })
    if (statSync(path).size > journalBytes) renameSync(path, `${path}.1`)
  } catch {
    // A full disk must not stop an agent.
  }
}

export const readJournal = (): JournalEntry[] =>
  [`${journalPath()}.1`, journalPath()].flatMap(path => {
    try {
      return readFileSync(path, 'utf8')
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line) as JournalEntry)
    } catch {
      return []
    }
  })
