import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { readConnection } from './files.ts'
import { readHookEvent, writeHookAnswer, type HookEvent } from './hook-event.ts'
import { record } from './journal.ts'
import { recallForPrompt, recallPerson } from './recall.ts'
import { nameRepository } from './repository.ts'
import { describeFailure } from './service.ts'
import { keep } from './spool.ts'
import { beginTurn, endTurn, noteAnswer } from './turn-state.ts'

/** Words that Claude Code puts in place of a person's when work in the background ends. */
const isOfProgram = (prompt: string): boolean => prompt.startsWith('<task-notification>')

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
    event = readHookEvent(JSON.parse(text) as Record<string, unknown>)
    const context = await handle(client, event)
    return writeHookAnswer(client, event, context)
  } catch (error) {
    record({ client, what: 'failed', error: describeFailure(error) })
    return event ? writeHookAnswer(client, event, undefined) : ''
  }
}

async function handle(client: string, event: HookEvent): Promise<string | undefined> {
  const { kind, session, prompt } = event
  const connection = readConnection(client)
  if (!connection || session === '') return undefined
  if (kind === 'answer') noteAnswer(event)
  if (kind === 'end') storeTurn(client, event)
  if (kind !== 'begin' && kind !== 'prompt') return undefined
  if (kind === 'prompt' && (prompt.trim() === '' || isOfProgram(prompt))) return undefined
  const repository = nameRepository(event.folder)
  const before = kind === 'prompt' ? beginTurn(event) : {}
  if (before === null) return undefined
  const context =
    kind === 'begin'
      ? await recallPerson(connection)
      : await recallForPrompt(connection, { prompt, repository, ...before })
  record({
    client,
    what: context === undefined ? 'nothing recalled' : 'recalled',
    repository,
    session,
    ...(context !== undefined && { characters: context.length }),
  })
  return context
}

/** Keeps a turn that is over in a file, and leaves sending it to a process that the agent does not wait for. */
function storeTurn(client: string, event: HookEvent): void {
  const turn = endTurn(event)
  if (!turn) return
  const { session } = event
  const repository = nameRepository(event.folder)
  const timestamp = Date.now()
  keep({
    client,
    key: turn.key,
    repository,
    session,
    body: {
      messages: [
        ...turn.prompts.map(content => ({ role: 'user', content, timestamp })),
        ...(turn.answer === '' ? [] : [{ role: 'assistant', content: turn.answer, timestamp }]),
      ],
      metadata: { repository, agent_id: client, run_id: session.slice(0, 256) },
    },
    ...(turn.answer === '' && { answerIn: { transcript: event.transcript!, texts: event.texts } }),
  })
  const program = fileURLToPath(new URL(import.meta.url)).replace(/run(\.[jt]s)$/, 'main$1')
  spawn(process.execPath, [program, 'send'], {
    detached: true,
    stdio: 'ignore',
    windowsHide: true,
  }).unref()
}
