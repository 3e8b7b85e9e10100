import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readConnection, readJson, stateFolder, writeJson } from './files.ts'
import { record } from './journal.ts'
import { callService, describeFailure, describeRefusal } from './service.ts'
import { readAnswer, waitUntilWritten } from './transcript.ts'

/** An exchange that is to be stored, as it waits in a file of its own. */
export type Waiting = {
  client: string
  /** The service sees a repeat by it. */
  key: string
  repository: string
  session: string
  body: { messages: SpokenMessage[]; metadata: object }
  /** Where the answer is to be read, and what stands for it if it is not there. */
  answerIn?: { transcript: string; texts: string }
}

type SpokenMessage = { role: string; content: string; timestamp: number }

const spoolFolder = (): string => join(stateFolder(), 'waiting')
const pathOf = (key: string): string => join(spoolFolder(), `${key}.json`)

/** Keeps an exchange until it is sent; the same one again is the same file. */
export const keep = (waiting: Waiting): void => writeJson(pathOf(waiting.key), waiting)

export const listWaiting = (): string[] => {
  try {
    return readdirSync(spoolFolder()).filter(name => name.endsWith('.json'))
  } catch {
    return []
  }
}

/** Reads the answer of a turn that ended without it, once its transcript is written. */
async function withAnswer(waiting: Waiting): Promise<Waiting> {
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
const sendMs = 15_000

/**
 * Sends what waits, until the service fails. Two of these at a time do no harm: the service stores one key once.
 *
 * @returns how many still wait.
 */
export async function sendWaiting(): Promise<number> {
  for (const name of listWaiting()) {
    const path = join(spoolFolder(), name)
    const found = readJson(path) as Waiting | undefined
    const connection = found && readConnection(found.client)
    // Another process has sent it, or its program is not connected now.
    if (!connection) continue
    const { client, key, repository, session, body } = await withAnswer(found)
    const about = { client, repository, session }
    try {
      const answer = await callService(connection, {
        method: 'POST',
        path: '/v1/memory/ingest',
        body,
        idempotencyKey: key,
        timeoutMs: sendMs,
      })
      const isStored = answer.status < 300
      if (isStored || finalStatuses.has(answer.status)) rmSync(path, { force: true })
      // A key that may not store is told so in an answer that is no refusal.
      if (isStored && answer.body['accepted'] === false) {
        record({ ...about, what: 'failed', error: String(answer.body['message']) })
        continue
      }
      if (isStored) {
        const characters = body.messages.reduce((sum, { content }) => sum + content.length, 0)
        record({ ...about, what: 'stored', characters })
        continue
      }
      record({ ...about, what: 'failed', error: describeRefusal(answer) })
      if (!finalStatuses.has(answer.status)) break
    } catch (error) {
      record({ ...about, what: 'failed', error: describeFailure(error) })
      break
    }
  }
  return listWaiting().length
}
