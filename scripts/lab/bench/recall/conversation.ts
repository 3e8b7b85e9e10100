import { readFileSync } from 'node:fs'
import type { Role } from '#shared/domain/memory.ts'

export type EvaluationTurn = { tag?: string; speaker: string; role: Role; text: string }

export type EvaluationSession = { at: number; turns: EvaluationTurn[] }

export type EvaluationQuestion = {
  kind: string
  text: string
  /** Tags of the turns that contain the answer; empty when none does. */
  evidence: string[]
}

export type EvaluationConversation = {
  sessions: EvaluationSession[]
  questions: EvaluationQuestion[]
}

/** Splits of the evaluation: `tuned` was used to develop the ranking, `heldout` was not. */
export type DatasetSplit = 'tuned' | 'heldout'

export const datasetSplits: readonly DatasetSplit[] = ['tuned', 'heldout']

const sessionPattern = /^== (\d{4}-\d\d-\d\d \d\d:\d\d)$/
const questionPattern = /^\?\? (\w+)((?: \w+)*) \| (.+)$/
const turnPattern = /^(\w+)(?: \{(\w+)\})?: (.+)$/

/**
 * Reads a conversation file. A session begins with `== date time`, a turn is `Speaker {tag}: text`
 * (the tag where a question needs the turn), a question `?? kind tags | text`.
 *
 * @throws Error on a line of another form, or a tag that no turn has.
 */
export function readConversation(split: DatasetSplit, name: string): EvaluationConversation {
  const conversation: EvaluationConversation = { sessions: [], questions: [] }
  for (const line of readLines(`${split}/${name}.txt`)) readLine(line, conversation)
  const tags = new Set(conversation.sessions.flatMap(({ turns }) => turns.map(({ tag }) => tag)))
  for (const { text, evidence } of conversation.questions) {
    for (const tag of evidence)
      if (!tags.has(tag)) throw new Error(`${split}/${name}: ${text}: ${tag}`)
  }
  return conversation
}

export function readLines(file: string): string[] {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8')
  return text.split('\n').filter(line => line !== '')
}

function readLine(line: string, { sessions, questions }: EvaluationConversation) {
  const [, date] = sessionPattern.exec(line) ?? []
  if (date) {
    sessions.push({ at: Date.parse(`${date.replace(' ', 'T')}Z`), turns: [] })
    return
  }
  const [, kind, tags, questionText] = questionPattern.exec(line) ?? []
  if (kind && questionText) {
    const evidence = (tags ?? '').split(' ').filter(tag => tag !== '')
    questions.push({ kind, text: questionText, evidence: kind === 'none' ? [] : evidence })
    return
  }
  const [, speaker, tag, text] = turnPattern.exec(line) ?? []
  if (!speaker || !text) throw new Error(`Not a line of a conversation: ${line}`)
  sessions.at(-1)!.turns.push({
    speaker,
    text,
    role: speaker === 'assistant' ? 'assistant' : 'user',
    ...(tag && { tag }),
  })
}
