import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { digest, readJson, stateFolder, writeJson } from './files.ts'
import type { HookEvent } from './hook-event.ts'

/** What is known of a session between two hooks. */
type TurnState = {
  /** What a person has said since the last answer: several prompts where a turn was interrupted. */
  prompts: string[]
  /** Where the turn began. */
  repository?: string
  turn: string
  /** For a program that gives each text of the assistant as it comes: the last one. */
  answer?: string
  turns: number
  /** The exchange before, so that a question such as "and why?" is asked with what it is about. */
  last?: Exchange
  /** The turn of that exchange, as long as a hook may prolong it. */
  ended?: { id: string; repository?: string; times: number }
}

/** What a person said and what was answered; empty where the answer is in a transcript. */
export type Exchange = { prompts: string[]; answer: string }

/** A turn that is over. */
export type FinishedTurn = Exchange & {
  id: string
  /** The same whenever this end of the turn is told again. */
  key: string
  /** Where it began; undefined in a state of an earlier version. */
  repository?: string | undefined
  /** The key of an earlier end of the same turn, whose answer this one replaces. */
  replaces?: string
}

const folder = (): string => join(stateFolder(), 'sessions')
const pathOf = (session: string): string => join(folder(), `${digest(session)}.json`)
const readState = (session: string): TurnState =>
  (readJson(pathOf(session)) as TurnState | undefined) ?? { prompts: [], turn: '', turns: 0 }

/**
 * Notes a prompt and the repository in which it was said.
 *
 * @returns the exchange before it; null for one that is noted and not answered yet: VS Code and Cursor run hooks of
 *   Claude Code too, and a prompt sent again after an interruption has its block before it.
 */
export function beginTurn(
  { session, turn, prompt }: HookEvent,
  repository: string,
): { isFirst: boolean; last?: Exchange | undefined } | null {
  const { ended: _, ...state } = readState(session)
  if (state.prompts.at(-1) === prompt) return null
  writeJson(pathOf(session), {
    ...state,
    prompts: [...state.prompts, prompt],
    repository,
    turn: turn ?? '',
  })
  return { isFirst: state.turns === 0 && state.prompts.length === 0, last: state.last }
}

/** A prompt that the program wrote itself: what is answered to it belongs to no turn of a person. */
export function leaveTurn({ session }: HookEvent): void {
  const { ended, ...state } = readState(session)
  if (ended) writeJson(pathOf(session), state)
}

/** Notes a text of the assistant, which may be the last one. */
export function noteAnswer({ session, answer }: HookEvent): void {
  if (answer !== '') writeJson(pathOf(session), { ...readState(session), answer })
}

/**
 * Ends the turn under way. The first of several hooks of one event gets it. Where another hook prolongs the turn, its
 * end is told again, and the last answer counts.
 *
 * @returns null where no prompt is noted, or nothing was answered: the prompt then goes with the next answer.
 */
export function endTurn(event: HookEvent): FinishedTurn | null {
  const { session, answer: given, transcript, isProlonged } = event
  const path = pathOf(session)
  const taken = `${path}.${process.pid}`
  try {
    renameSync(path, taken)
  } catch {
    return null
  }
  const state = readJson(taken) as TurnState | undefined
  rmSync(taken, { force: true })
  if (!state) return null
  const answer = given || (state.answer ?? '')
  const { prompts, repository, turn, turns, last, ended } = state
  if (prompts.length === 0 && isProlonged && ended && last && answer !== last.answer) {
    const next = { ...ended, times: ended.times + 1 }
    const exchange = { prompts: last.prompts, answer }
    writeJson(path, { ...state, last: exchange, ended: next })
    return { ...exchange, ...next, key: keyOf(next), replaces: keyOf(ended) }
  }
  if (prompts.length === 0 || (answer === '' && transcript === undefined)) {
    writeJson(path, state)
    return null
  }
  const exchange = { prompts, answer }
  const id = digest(session, turn === '' ? String(turns) : turn)
  const now = { id, ...(repository !== undefined && { repository }), times: 1 }
  writeJson(path, { prompts: [], turn: '', turns: turns + 1, last: exchange, ended: now })
  return { ...exchange, ...now, key: keyOf(now) }
}

const keyOf = ({ id, times }: { id: string; times: number }): string =>
  times === 1 ? id : `${id}-${times}`

const weekMs = 7 * 24 * 60 * 60 * 1000

/** Removes what is known of sessions that nothing was said in for a week. */
export function sweepSessions(): void {
  for (const name of list(folder())) {
    const path = join(folder(), name)
    try {
      if (Date.now() - statSync(path).mtimeMs > weekMs) rmSync(path, { force: true })
    } catch {
      // Another process has removed it.
    }
  }
}

const list = (path: string): string[] => {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
