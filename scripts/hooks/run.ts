import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { readConnection, type Connection } from './files.ts'
import { readHookEvent, writeHookAnswer, type HookEvent } from './hook-event.ts'
import { record } from './journal.ts'
import { recallForPrompt, recallPerson } from './recall.ts'
import { claimRepository } from './repository-claims.ts'
import { describeFailure } from './service.ts'
import { keep, listWaiting } from './spool.ts'
import { beginTurn, endTurn, leaveTurn, noteAnswer } from './turn-state.ts'

/** What a hook says: a block for the model, and a question for the person. */
type HookAnswer = { context?: string | undefined; question?: string | undefined }

/**
 * Answers a hook: a block at the begin of a session and at a prompt, nothing else. It never fails, since an agent
 * would stop; what went wrong stands in the journal.
 *
 * @param text what the program wrote, JSON
 * @returns what the program reads.
 */
export async function runHook(client: string, text: string): Promise<string> {
  let event: HookEvent | undefined
  try {
    event = readHookEvent(JSON.parse(text.replace(/^\uFEFF/, '')) as Record<string, unknown>)
    return writeHookAnswer(client, event, await handle(client, event))
  } catch (error) {
    record({ client, what: 'failed', error: describeFailure(error) })
    return event ? writeHookAnswer(client, event, {}) : ''
  }
}

async function handle(client: string, event: HookEvent): Promise<HookAnswer> {
  const { kind, session, prompt } = event
  if (kind === 'other' || session === '') return {}
  const connection = readConnection(client)
  if (!connection) {
    if (kind === 'prompt')
      record({ client, what: 'without memory', session, error: 'this program is not connected' })
    return {}
  }
  if (kind === 'answer') noteAnswer(event)
  if (kind === 'end') storeTurn(client, event)
  if (kind === 'begin') return begin(client, connection, event)
  if (kind !== 'prompt') return {}
  if (prompt.trim() === '') {
    leaveTurn(event)
    return {}
  }
  const { name: repository, question } = claimRepository(event.folder)
  const before = beginTurn(event, repository)
  if (before === null) return {}
  const { isFirst, last } = before
  const recalled = recallForPrompt(connection, { prompt, repository, last })
  const context = await tell(recalled, { client, repository, session })
  return { context, question: isFirst ? question : undefined }
}

async function begin(
  client: string,
  connection: Connection,
  event: HookEvent,
): Promise<HookAnswer> {
  // What a session left, whose program was ended before it was sent.
  if (listWaiting().length > 0) sendInBackground()
  const { name: repository } = claimRepository(event.folder)
  const { session } = event
  return { context: await tell(recallPerson(connection), { client, repository, session }) }
}

/** Waits for a block, and records it, or why there is none. */
async function tell(
  recalling: Promise<string | undefined>,
  about: { client: string; repository: string; session: string },
): Promise<string | undefined> {
  try {
    const context = await recalling
    const what = context === undefined ? 'nothing recalled' : 'recalled'
    record({ ...about, what, ...(context !== undefined && { characters: context.length }) })
    return context
  } catch (error) {
    record({ ...about, what: 'without memory', error: describeFailure(error) })
    return undefined
  }
}

/** Keeps a turn that is over in a file, and leaves sending it to a process that the agent does not wait for. */
function storeTurn(client: string, event: HookEvent): void {
  const turn = endTurn(event)
  if (!turn) return
  const { session, transcript, texts } = event
  const { key, repository = claimRepository(event.folder).name, prompts, answer, replaces } = turn
  const timestamp = Date.now()
  keep({
    client,
    key,
    repository,
    session,
    body: {
      messages: [
        ...prompts.map(content => ({ role: 'user', content, timestamp })),
        ...(answer === '' ? [] : [{ role: 'assistant', content: answer, timestamp }]),
      ],
      metadata: {
        repository,
        agent_id: client,
        run_id: session.slice(0, 256),
        turn_id: turn.id,
      },
    },
    ...(replaces !== undefined && { replaces }),
    ...(answer === '' && { answerIn: { transcript: transcript!, texts } }),
  })
  sendInBackground()
}

function sendInBackground(): void {
  const program = fileURLToPath(new URL(import.meta.url)).replace(/run(\.[jt]s)$/, 'main$1')
  spawn(process.execPath, [program, 'send'], {
    detached: true,
    stdio: 'ignore',
    windowsHide: true,
  }).unref()
}
