import { listClients, readConnection, type Connection } from './files.ts'
import { askService } from './service.ts'

/** How a memory can be judged; all but the last end its being told. */
export const feedbacks = ['wrong', 'outdated', 'not_mine', 'right']

type Row = { memory_id?: string; text?: string; feedback?: string }

const uuid = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i
const timeoutMs = 20_000
const rowsMax = 5

/**
 * Says what a person finds of one memory, in each vault that a program is connected to.
 *
 * @param named its id, or words that stand in it alone
 * @returns sentences on what became of it
 */
export async function giveFeedback(feedback: string, named: string): Promise<string> {
  const connections = listClients().flatMap(client => readConnection(client) ?? [])
  const vaults = new Map(connections.map(one => [`${one.base_url} ${one.key}`, one]))
  if (vaults.size === 0) return 'No program is connected.\n'
  const parts = await Promise.all(
    Array.from(vaults.values(), one =>
      judge(one, feedback, named).catch(error => `${(error as Error).message}\n`),
    ),
  )
  return [...new Set(parts)].join('')
}

async function judge(vault: Connection, feedback: string, named: string): Promise<string> {
  const rows = uuid.test(named) ? [{ memory_id: named }] : await find(vault, named)
  const texts = new Set(rows.map(({ text }) => text))
  if (rows.length === 0) return `No memory has these words: ${named}\n`
  if (texts.size > 1) {
    const lines = rows.map(({ memory_id: id, text = '' }) => `  ${id}  ${text.slice(0, 80)}\n`)
    return `Several memories have these words; name one by its id:\n${lines.join('')}`
  }
  const path = `/v1/memory/${rows[0]!.memory_id}/feedback`
  const { count } = await askService(vault, { method: 'POST', path, body: { feedback }, timeoutMs })
  const told = feedback === 'right' ? 'is told' : `is ${feedback.replace('_', ' ')}, told no more`
  return `${String(count)} ${count === 1 ? `memory ${told}` : `memories of one text: ${told}`}.\n`
}

async function find(vault: Connection, words: string): Promise<Row[]> {
  const path = `/v1/memory/list?limit=${rowsMax}&search=${encodeURIComponent(words)}`
  const { items } = await askService(vault, { method: 'GET', path, timeoutMs })
  return items as Row[]
}
