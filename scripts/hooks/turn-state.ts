import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { digest, readJson, stateFolder, writeJson } from './files.ts'
import type { HookEvent } from './hook-event.ts'

/** What is known of a session between two hooks. */
type TurnState = {
  /** What a person has said since the last answer: several prompts where a turn was interrupted. */
  prompts: string[]
  turn: string
  /** Of a program that gives each text of the assistant as it comes: the last one. */
  answer?: string
  turns: number
  /** The exchange before, so that a question such as "and why?" is asked with what it is about. */
  last?: Exchange
}

/** What a person said and what was answered; empty where the answer is in a transcript. */
export type Exchange = { prompts: string[]; answer: string }

/** A turn that is over. @property key is the same whenever it is told again */
export type FinishedTurn = Exchange & { key: string }

const folder = (): string => join(stateFolder(), 'sessions')
const pathOf = (session: string): string => join(folder(), `${digest(session)}.json`)
const readState = (session: string): TurnState =>
  (readJson(pathOf(session)) as TurnState | undefined) ?? { prompts: [], turn: '', turns: 0 }

/**
 * Notes a prompt.
 *
 * @returns the exchange before it; null for one that is noted and not answered yet: VS Code and Cursor run hooks of
 *   Claude Code too, and a prompt sent again after an interruption has its block before it.
 */
export function beginTurn({ session, turn, prompt }: HookEvent): { last?: Exchange } | null {
  const state = readState(session)
  if (state.prompts.at(-1) === prompt) return null
  writeJson(pathOf(session), {
    ...state,
    prompts: [...state.prompts, prompt],
    turn: turn ?? '',
  })
  return state.last ? { last: state.last } : {}
}

/** Notes a text of the assistant, which may be the last one. */
export function noteAnswer({ session, answer }: HookEvent): void {
  writeJson(pathOf(session), { ...readState(session), answer })
}

/**
 * Ends the turn under way. Of several hooks of one event the first gets it.
 *
 * @returns null where no prompt is noted, or nothing was answered: the prompt then goes with the next answer.
 */
export function endTurn({ session, answer: given, transcript }: HookEvent): FinishedTurn | null {
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
  if (state.prompts.length === 0 || (answer === '' && transcript === undefined)) {
    writeJson(path, state)
    return null
  }
  const { prompts, turn, turns } = state
  const last = { prompts, answer }
  writeJson(path, { prompts: [], turn: '', turns: turns + 1, last })
  return { ...last, key: digest(session, turn === '' ? String(turns) : turn) }
}

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
