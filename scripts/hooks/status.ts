import { statSync } from 'node:fs'
import { join } from 'node:path'
import { connectionsFolder, listClients, readConnection } from './files.ts'
import { readJournal, type JournalEntry } from './journal.ts'
import { callService, describeFailure, describeRefusal } from './service.ts'
import { listWaiting, spoolFolder, type UnsentTurn } from './spool.ts'

type Row = { date?: string; role?: string; text?: string; metadata?: { repository?: string } }

/** Tells for each connected program what its hooks have done, what waits and why, and what the vault has of it. */
export async function describeStatus(): Promise<string> {
  const journal = readJournal()
  const clients = listClients()
  const waiting = listWaiting()
  const parts = await Promise.all(clients.map(client => describeClient(client, journal, waiting)))
  const others = waiting.filter(({ client }) => !clients.includes(client))
  return [
    ...(clients.length === 0 ? ['No program is connected.\n'] : parts),
    ...[...new Set(others.map(({ client }) => client))].map(
      client =>
        `${client} is not connected: ${describeWaiting(others.filter(one => one.client === client))}; they go once it is connected again, or remove them from ${spoolFolder()}\n`,
    ),
    `${waiting.length} ${waiting.length === 1 ? 'exchange waits' : 'exchanges wait'} to be sent.\n`,
  ].join('\n')
}

/** How many wait, since when, and the last reason. */
function describeWaiting(waiting: readonly UnsentTurn[]): string {
  const times = waiting.flatMap(({ body }) => body.messages[0]?.timestamp ?? [])
  const tried = waiting.flatMap(one => one.tried ?? []).toSorted((a, b) => (a.at < b.at ? 1 : -1))
  const since = times.length === 0 ? '' : `, since ${new Date(Math.min(...times)).toISOString()}`
  return `${waiting.length} ${waiting.length === 1 ? 'turn waits' : 'turns wait'}${since}${tried[0] ? `: ${tried[0].error}` : ''}`
}

async function describeClient(
  client: string,
  journal: readonly JournalEntry[],
  all: readonly UnsentTurn[],
): Promise<string> {
  const own = journal.filter(entry => entry.client === client)
  const times = (...whats: JournalEntry['what'][]): string => {
    const entries = own.filter(({ what }) => whats.includes(what))
    const { at, error } = entries.at(-1) ?? {}
    const reason = error === undefined ? '' : `: ${error}`
    return entries.length === 0 ? 'never' : `${entries.length} times, last ${at}${reason}`
  }
  const waiting = all.filter(one => one.client === client)
  const failure = own.findLast(({ what }) => what === 'failed')
  const path = join(connectionsFolder(), `${client}.json`)
  const isOpen = process.platform !== 'win32' && (statSync(path).mode & 0o044) !== 0
  return [
    `${client}: ${readConnection(client)?.base_url ?? 'its connection cannot be read'}`,
    `  hooks ran: ${own.length === 0 ? 'never; start a new session of the program, and see that it trusts them' : `last ${own.at(-1)!.at}`}`,
    `  recalled: ${times('recalled')}; nothing to recall: ${times('nothing recalled')}`,
    `  prompts without memory: ${times('without memory')}`,
    `  stored: ${times('stored')}; refused: ${times('refused')}`,
    `  waiting: ${waiting.length === 0 ? 'nothing' : describeWaiting(waiting)}`,
    ...(failure ? [`  last failure: ${failure.at} ${failure.error ?? ''}`] : []),
    ...(isOpen ? [`  other users of this machine can read its key: chmod 600 ${path}`] : []),
    ...(await describeStored(client)),
    '',
  ].join('\n')
}

/** The last memories that the vault has from a program, as the service lists them. */
async function describeStored(client: string): Promise<string[]> {
  const connection = readConnection(client)
  if (!connection) return []
  try {
    const metadata = encodeURIComponent(JSON.stringify({ agent_id: client }))
    const answer = await callService(connection, {
      method: 'GET',
      path: `/v1/memory/list?limit=4&metadata=${metadata}`,
      timeoutMs: 10_000,
    })
    if (answer.status !== 200) return [`  the vault: ${describeRefusal(answer)}`]
    const rows = (answer.body['items'] ?? []) as Row[]
    if (rows.length === 0) return ['  the vault has nothing of it yet']
    return ['  the vault has, newest first:', ...rows.map(describeRow)]
  } catch (error) {
    return [`  the vault: ${describeFailure(error)}`]
  }
}

function describeRow({ date = '', role = '', text = '', metadata }: Row): string {
  const line = text.replaceAll(/\s+/g, ' ')
  const shown = line.length > 60 ? `${line.slice(0, 60)}…` : line
  return `    ${date} ${metadata?.repository ?? ''} ${role}: ${shown}`
}
