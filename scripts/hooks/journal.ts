import { appendFileSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { stateFolder } from './files.ts'

/** What a hook has done; texts are never in it. */
export type JournalEntry = {
  at: string
  client: string
  /** `without memory` is a prompt that got no answer, `not sent` a turn that waits, `refused` one that is gone. */
  what:
    | 'recalled'
    | 'nothing recalled'
    | 'without memory'
    | 'stored'
    | 'not sent'
    | 'refused'
    | 'failed'
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

/** A line that a full disk has cut is passed over. */
export const readJournal = (): JournalEntry[] =>
  [`${journalPath()}.1`, journalPath()].flatMap(path => {
    try {
      return readFileSync(path, 'utf8')
        .split('\n')
        .flatMap(line => parse(line) ?? [])
    } catch {
      return []
    }
  })

function parse(line: string): JournalEntry | undefined {
  try {
    return JSON.parse(line) as JournalEntry
  } catch {
    return undefined
  }
}
