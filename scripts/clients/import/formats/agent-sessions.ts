import type { Draft, Losses } from '#api/import/draft.ts'
import { asTime } from '#api/import/formats/fields.ts'
import { nameRepository } from '#scripts/hooks/repository.ts'
import { readText } from '#shared/domain/turn/text.ts'

/** What a line of a session says. */
export type SessionLine = {
  role: 'user' | 'assistant'
  text: string
  time: unknown
}

type Session = { agent: string; session: string; repository: string }

/**
 * Reads the sessions of a coding agent, a line at a time: of a person what they typed, without what the program put
 * around it, of the agent the last text before the next prompt.
 */
export function readSessions(agent: string, losses: Losses) {
  let current: Session = { agent, session: '', repository: '' }
  /** The turns of this session: what was said, then the answer. They wait, since a person may take turns back. */
  let turns: Draft[][] = []
  let answer: SessionLine | undefined
  const repositories = new Map<string, string>()

  function endTurn(): void {
    if (answer) turns.push([...(turns.pop() ?? []), toDraft(answer, current)])
    answer = undefined
  }

  function* close(): Generator<Draft> {
    endTurn()
    yield* turns.flat()
    turns = []
  }

  return {
    /** @param repository undefined where it follows from the folder */
    *open(session: string, folder: string, repository?: string): Generator<Draft> {
      if (session === current.session) return
      yield* close()
      const named = repositories.get(folder) ?? nameRepository(folder)
      repositories.set(folder, named)
      current = { agent, session, repository: repository ?? named }
    },
    /** How many turns the session has. */
    count: (): number => turns.length,
    /** Takes back all turns but the first ones, as a person did who went back in the conversation. */
    keepFirst(count: number): void {
      if (count >= turns.length) return
      answer = undefined
      losses.add('turns that were taken back', turns.splice(count).length)
    },
    say(line: SessionLine): void {
      if (line.role === 'assistant') {
        if (line.text.trim() === '') return
        if (answer && answer.text !== line.text) losses.add('texts between tool calls')
        answer = line
        return
      }
      const { words } = readText({ text: line.text, isModel: false, messageHolds: () => false })
      if (words.trim() === '') {
        losses.add('messages that the program wrote')
        return
      }
      endTurn()
      turns.push([toDraft({ ...line, text: words }, current)])
    },
    close,
  }
}

/** The metadata that the hooks give too. */
const toDraft = ({ role, text, time }: SessionLine, of: Session): Draft => ({
  content: text,
  role,
  timestamp: asTime(time),
  metadata: {
    source: of.agent,
    agent_id: of.agent,
    run_id: of.session,
    repository: of.repository,
  },
})
