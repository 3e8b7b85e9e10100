import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readConnection, readJson, stateFolder, writeJson, type Connection } from './files.ts'
import { record } from './journal.ts'
import { callService, describeFailure, describeRefusal, type ServiceAnswer } from './service.ts'
import { readAnswer, waitUntilWritten } from './transcript.ts'

/** An exchange that is to be stored, as it waits in a file of its own. */
export type UnsentTurn = {
  client: string
  /** The service sees a repeat by it. */
  key: string
  repository: string
  session: string
  body: { messages: SpokenMessage[]; metadata: Record<string, string> }
  /** The key of the same turn with an earlier answer, which goes. */
  replaces?: string
  /** Where the answer is to be read, and what stands for it if it is not there. */
  answerIn?: { transcript: string; texts: string }
  /** When it was last tried in vain, and why it waits. */
  tried?: { at: string; error: string }
}

type SpokenMessage = { role: string; content: string; timestamp: number }

export const spoolFolder = (): string => join(stateFolder(), 'waiting')
const pathOf = (key: string): string => join(spoolFolder(), `${key}.json`)

/** Keeps an exchange until it is sent; the same one again is the same file. */
export const keep = (waiting: UnsentTurn): void => writeJson(pathOf(waiting.key), waiting)

/** What waits: what was never tried first, then what was tried longest ago, so that nothing stands before the rest. */
export function listWaiting(): UnsentTurn[] {
  const rank = ({ tried, body }: UnsentTurn): string =>
    tried?.at ?? `0${String(body.messages[0]?.timestamp ?? 0).padStart(16, '0')}`
  return listFiles()
    .flatMap(name => (readJson(join(spoolFolder(), name)) as UnsentTurn | undefined) ?? [])
    .sort((one, other) => (rank(one) < rank(other) ? -1 : 1))
}

const listFiles = (): string[] => {
  try {
    return readdirSync(spoolFolder()).filter(name => name.endsWith('.json'))
  } catch {
    return []
  }
}

/** Reads the answer of a turn that ended without it, once its transcript is written. */
async function withAnswer(waiting: UnsentTurn): Promise<UnsentTurn> {
  const { answerIn, ...whole } = waiting
  if (!answerIn) return waiting
  await waitUntilWritten(answerIn.transcript)
  const { messages } = whole.body
  const { content, timestamp } = messages.at(-1)!
  const answer = readAnswer(answerIn.transcript, content) ?? answerIn.texts
  if (answer !== '') messages.push({ role: 'assistant', content: answer, timestamp })
  keep(whole)
  return whole
}

/** Refusals of an exchange itself: it would be refused again. All else is tried again. */
const finalStatuses = new Set([400, 413, 415, 422])
/** Refusals of every exchange of a connection. */
const commonStatuses = new Set([401, 402, 403, 404, 429, 503])
const sendMs = 15_000

/**
 * Sends what waits, the programs beside each other, each until its service fails. Two of these at a time do no harm:
 * the service stores one key once.
 *
 * @param only the one program whose turns are sent; all, when missing
 */
export async function sendWaiting(only?: string): Promise<void> {
  const byClient = new Map<string, UnsentTurn[]>()
  for (const waiting of listWaiting()) {
    const { client } = waiting
    if (only === undefined || client === only)
      byClient.set(client, [...(byClient.get(client) ?? []), waiting])
  }
  await Promise.all([...byClient].map(([client, all]) => sendAll(readConnection(client), all)))
}

async function sendAll(
  connection: Connection | undefined,
  all: readonly UnsentTurn[],
): Promise<void> {
  // A program that is not connected now: status says so.
  if (!connection) return
  for (const waiting of all) {
    // Another process has sent it.
    if (!existsSync(pathOf(waiting.key))) continue
    const sent = await withAnswer(waiting)
    try {
      if (!settle(sent, await send(connection, sent))) return
    } catch (error) {
      wait(sent, describeFailure(error))
      return
    }
  }
}

async function send(connection: Connection, waiting: UnsentTurn): Promise<ServiceAnswer> {
  const { key, body, replaces } = waiting
  if (replaces !== undefined) await removeEarlier(connection, waiting, replaces)
  const path = '/v1/memory/ingest'
  const call = { path, body, idempotencyKey: key, timeoutMs: sendMs }
  return await callService(connection, { method: 'POST', ...call })
}

/** Removes what an earlier end of the turn has left: the file, or what was stored of it. */
async function removeEarlier(
  connection: Connection,
  { client, body: { metadata } }: UnsentTurn,
  key: string,
): Promise<void> {
  if (existsSync(pathOf(key))) return rmSync(pathOf(key), { force: true })
  const earlier = { agent_id: client, turn_id: metadata['turn_id']! }
  // What was accepted a moment ago may not be stored yet.
  for (const waitMs of [500, 2000, 0]) {
    const { status, body } = await callService(connection, {
      method: 'POST',
      path: '/v1/memory/delete-ids',
      body: { metadata: earlier },
      timeoutMs: sendMs,
    })
    if (status >= 300 || body['deleted'] !== 0) return
    await delay(waitMs)
  }
}

/** Notes what became of an exchange. @returns false where the next ones of its program would fare no better */
function settle(waiting: UnsentTurn, answer: ServiceAnswer): boolean {
  const { client, key, repository, session, body } = waiting
  const about = { client, repository, session }
  const { status } = answer
  if (status >= 300 && !finalStatuses.has(status)) {
    wait(waiting, describeRefusal(answer))
    return !commonStatuses.has(status)
  }
  rmSync(pathOf(key), { force: true })
  // A key that may not store is told so in an answer that is no refusal.
  if (status >= 300 || answer.body['accepted'] === false) {
    const error = status >= 300 ? describeRefusal(answer) : String(answer.body['message'])
    record({ ...about, what: 'refused', error })
    return true
  }
  const characters = body.messages.reduce((sum, { content }) => sum + content.length, 0)
  record({ ...about, what: 'stored', characters })
  return true
}

/** Keeps an exchange with the reason why it was not sent. */
function wait(waiting: UnsentTurn, error: string): void {
  const { client, key, repository, session } = waiting
  record({ client, repository, session, what: 'not sent', error })
  // Else another process has sent it meanwhile.
  if (existsSync(pathOf(key))) keep({ ...waiting, tried: { at: new Date().toISOString(), error } })
}
