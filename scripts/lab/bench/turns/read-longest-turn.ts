import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What a process is started with (`node --import`) whose turns of the event loop are to be measured. */
export const longestTurnPreload = fileURLToPath(new URL('longest-turn.ts', import.meta.url))

/** Forgets the turns of a process so far. */
export const resetLongestTurn = (child: ChildProcess): void => void child.send({ turns: 'reset' })

/** @returns how long the event loop of a process was held at most, in milliseconds */
export async function readLongestTurn(child: ChildProcess): Promise<number> {
  const answer = once(child, 'message') as Promise<[{ longestMs: number }]>
  child.send({ turns: 'read' })
  const [{ longestMs }] = await answer
  return longestMs
}
