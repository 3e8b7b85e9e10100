import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A line of a conversation, as a set names it. */
type ScoredLine = {
  id: string
  session: string
  role: 'user' | 'assistant'
  content: string
  /** Milliseconds since 1970. */
  timestamp: number
}

export type ScoredQuestion = {
  text: string
  kind: string
  /** Lines that answer it; empty where a set names sessions alone. */
  lines: readonly string[]
  sessions: readonly string[]
}

/** What is stored in one vault, and asked of it. */
export type ScoredVault = { lines: readonly ScoredLine[]; questions: readonly ScoredQuestion[] }

type Fields = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- files of others

const readJson = (file: string): Fields => JSON.parse(readFileSync(file, 'utf8')) as Fields

const lineMs = 1000

/** The sets, each with what reads its file or folder as its makers publish it. */
export const setReaders: Record<string, (path: string) => Iterable<ScoredVault>> = {
  locomo: readLocomo,
  longmemeval: readLongMemEval,
  beam: readBeam,
  consolidation: readFactConsolidation,
  vehicle: readVehicleMemBench,
  realtalk: readRealTalk,
}

/** `data/locomo10.json` of snap-research/locomo: questions of categories 1 to 4. */
function* readLocomo(file: string): Generator<ScoredVault> {
  const kinds = ['', 'multi-hop', 'temporal', 'open-domain', 'single-hop']
  for (const { conversation, qa } of readJson(file) as unknown as Fields[]) {
    const lines: ScoredLine[] = []
    for (const session of Object.keys(conversation).filter(name => /^session_\d+$/.test(name))) {
      const start = parseLocomoTime(String(conversation[`${session}_date_time`]))
      for (const [at, turn] of (conversation[session] as Fields[]).entries()) {
        lines.push({
          id: turn.dia_id,
          session,
          role: turn.speaker === conversation.speaker_a ? 'user' : 'assistant',
          content: `${turn.speaker}: ${turn.text}${imageOf(turn)}`,
          timestamp: start + at * lineMs,
        })
      }
    }
    const sessionOf = new Map(lines.map(({ id, session }) => [id, session]))
    const questions = (qa as Fields[]).flatMap(({ question, evidence = [], category }) => {
      const named = String(evidence.join(' ')).match(/D\d+:\d+/g) ?? []
      const answers = [...new Set(named)].filter(id => sessionOf.has(id))
      if (category === 5 || answers.length === 0) return []
      const kind = kinds[category as number] ?? String(category)
      return [toQuestion(question, kind, answers, sessionOf)]
    })
    yield { lines, questions }
  }
}

/** Such as `1:56 pm on 8 May, 2023`. */
function parseLocomoTime(text: string): number {
  const [time = '', date = ''] = text.split(' on ')
  return Date.parse(`${date.replace(',', '')} ${time} UTC`)
}

/** The folder `data` of REALTALK: people who write each other for three weeks, and questions about them. */
function* readRealTalk(folder: string): Generator<ScoredVault> {
  const kinds = ['', 'multi-hop', 'temporal', 'commonsense']
  const names = readdirSync(folder).filter(name => /^Chat_.*\.json$/.test(name))
  for (const name of names.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))) {
    const chat = readJson(join(folder, name))
    const sessions = Object.keys(chat).filter(key => /^session_\d+$/.test(key))
    const lines = sessions.flatMap(session =>
      (chat[session] as Fields[]).map((turn): ScoredLine => ({
        id: turn.dia_id,
        session,
        role: turn.speaker === chat.name.speaker_1 ? 'user' : 'assistant',
        content: `${turn.speaker}: ${turn.clean_text}${imageOf(turn)}`,
        timestamp: parseRealTalkTime(String(turn.date_time)),
      })),
    )
    const sessionOf = new Map(lines.map(({ id, session }) => [id, session]))
    const questions = (chat.qa as Fields[]).flatMap(({ question, evidence, category }) => {
      // Some stand as `D1:6; D 3:18`; a few name no line that is there.
      const said = String(evidence.join(' ')).matchAll(/D\s?(\d+:\d+)/g)
      const answers = [...new Set(Array.from(said, ([, id]) => `D${id}`))]
      const there = answers.filter(id => sessionOf.has(id))
      return there.length > 0 ? [toQuestion(question, kinds[category]!, there, sessionOf)] : []
    })
    yield { lines, questions }
  }
}

/** Such as `29.12.2023, 22:42:04`. */
function parseRealTalkTime(text: string): number {
  const [day, month, year, time] = text.split(/[.,]\s*/)
  return Date.parse(`${year}-${month}-${day}T${time}Z`)
}

/** What a picture shows, as a model described it for the set. */
const imageOf = ({ blip_caption: caption }: Fields): string =>
  caption ? ` [image: ${caption}]` : ''

/** `longmemeval_s*.json`: a vault for each question that has an answer. */
function* readLongMemEval(file: string): Generator<ScoredVault> {
  for (const one of readJson(file) as unknown as Fields[]) {
    if (String(one.question_id).endsWith('_abs')) continue
    const lines: ScoredLine[] = []
    const answers: string[] = []
    for (const [at, turns] of (one.haystack_sessions as Fields[][]).entries()) {
      const session = String(one.haystack_session_ids[at])
      // Such as `2023/05/30 (Tue) 23:40`.
      const start = Date.parse(`${String(one.haystack_dates[at]).replace(/ \(\w+\)/, '')} UTC`)
      for (const [number, { role, content, has_answer: isAnswer }] of turns.entries()) {
        if (String(content).trim() === '') continue
        const id = `${at}:${number}`
        if (isAnswer) answers.push(id)
        lines.push({ id, session, role, content, timestamp: start + number * lineMs })
      }
    }
    const sessions = (one.answer_session_ids as unknown[]).map(String)
    const question = { text: one.question, kind: one.question_type, lines: answers, sessions }
    yield { lines, questions: [question] }
  }
}

/** A folder of `chats` of BEAM, such as `chats/100K`; the questions that have no answer are left out. */
function* readBeam(folder: string): Generator<ScoredVault> {
  const names = readdirSync(folder).sort((a, b) => Number(a) - Number(b))
  for (const name of names) {
    const file = join(folder, name, 'probing_questions/probing_questions.json')
    if (!existsSync(file) || !existsSync(join(folder, name, 'chat.json'))) continue
    const lines: ScoredLine[] = []
    for (const batch of readJson(join(folder, name, 'chat.json')) as unknown as Fields[]) {
      const turns = (batch.turns as Fields[][]).flat()
      const day = turns.find(turn => turn.time_anchor)?.time_anchor as string | undefined
      const start = day ? Date.parse(`${day.replaceAll('-', ' ')} UTC`) : lines.at(-1)!.timestamp
      for (const [at, { id, role, content }] of turns.entries()) {
        // Its place in the plan of the set stands at the end of a question.
        const words = String(content).replace(/\s*->->[\s\d,]*$/, '')
        const timestamp = start + (at + 1) * lineMs
        const session = String(batch.batch_number)
        if (words.trim() !== '')
          lines.push({ id: String(id), session, role, content: words, timestamp })
      }
    }
    const sessionOf = new Map(lines.map(({ id, session }) => [id, session]))
    const questions = Object.entries(readJson(file)).flatMap(([kind, asked]) =>
      (asked as Fields[]).flatMap(({ question, source_chat_ids: source }) => {
        const answers = [...new Set(leaves(source))].filter(id => sessionOf.has(id))
        if (kind === 'abstention' || answers.length === 0) return []
        return [toQuestion(question, kind, answers, sessionOf)]
      }),
    )
    yield { lines, questions }
  }
}

/**
 * `Conflict_Resolution.json` of MemoryAgentBench, as EvoMemBench has it: numbered facts, of which later ones override earlier
 * ones; the questions of one hop. The line that answers is the last one with the answer.
 */
function* readFactConsolidation(file: string): Generator<ScoredVault> {
  for (const { context, questions, answers, metadata } of readJson(file) as unknown as Fields[]) {
    const source = String(metadata.source)
    if (!source.includes('_sh_')) continue
    const start = Date.UTC(2026, 0, 1)
    const lines = Array.from(String(context).matchAll(/^(\d+)\. (.+)$/gm), ([, id, text], at) => ({
      id: id!,
      session: source,
      role: 'user' as const,
      content: text!,
      timestamp: start + at * lineMs,
    }))
    const asked = (questions as string[]).flatMap((text, i) => {
      const wanted = (answers[i] as unknown[]).map(answer => ` ${String(answer).toLowerCase()}.`)
      const words = text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []
      const holds = lines.filter(({ content }) =>
        wanted.some(answer => content.toLowerCase().endsWith(answer)),
      )
      // The fact with most of the question and least beside it stands for those with one answer.
      const shared = ({ content }: ScoredLine): number => {
        const said = content.toLowerCase()
        const count = words.filter(word => said.includes(word)).length
        return count - said.split(' ').length / 100
      }
      const most = Math.max(...holds.map(shared))
      const answer = holds.findLast(line => shared(line) === most)
      return answer ? [{ text, kind: source, lines: [answer.id], sessions: [source] }] : []
    })
    yield { lines, questions: asked }
  }
}

/** The folder `benchmark` of VehicleMemBench: what people say in a car, and the lines that settle each question. */
function* readVehicleMemBench(folder: string): Generator<ScoredVault> {
  const count = readdirSync(join(folder, 'history')).length
  for (let number = 1; number <= count; number++) {
    const told = readFileSync(join(folder, `history/history_${number}.txt`), 'utf8').split('\n')
    const lines = told.flatMap((line, at) => {
      const [, time, content] = /^\[([\d-]+ [\d:]+)\] (.+)$/.exec(line) ?? []
      if (time === undefined || content === undefined) return []
      const timestamp = Date.parse(`${time} UTC`)
      return [
        { id: String(at), session: time.slice(0, 10), role: 'user' as const, content, timestamp },
      ]
    })
    const sessionOf = new Map(lines.map(({ id, session }) => [id, session]))
    const file = join(folder, `qa_data/qa_${number}.json`)
    const asked = existsSync(file) ? (readJson(file).related_to_vehicle_preference as Fields[]) : []
    const questions = asked.flatMap(({ query, gold_memory: gold, reasoning_type: kind }) => {
      const answers = String(gold)
        .split('\n')
        .flatMap(line => lineRetold(line, lines)?.id ?? [])
      return answers.length > 0 ? [toQuestion(query, kind ?? 'preference', answers, sessionOf)] : []
    })
    yield { lines, questions }
  }
}

/** The line that an answer retells, `[March 10, 2025] At 8:00 AM, Gary told …`: of that day the one with most of its words. */
function lineRetold(retold: string, lines: readonly ScoredLine[]): ScoredLine | undefined {
  const [, date = ''] = /^\[([^\]]+)\]/.exec(retold) ?? []
  const day = Date.parse(`${date} UTC`)
  if (Number.isNaN(day)) return undefined
  const words = new Set(longWords(retold))
  const shared = ({ content }: ScoredLine): number =>
    new Set(longWords(content).filter(word => words.has(word))).size
  const ofDay = lines.filter(({ timestamp }) => timestamp >= day && timestamp < day + dayMs)
  const [best] = ofDay.toSorted((one, other) => shared(other) - shared(one))
  return best && shared(best) >= sharedWordsMin ? best : undefined
}
const dayMs = 86_400_000
/** Fewer words in common are chance. */
const sharedWordsMin = 4
const longWords = (text: string): string[] => text.toLowerCase().match(/\p{L}{4,}/gu) ?? []

/** The numbers in lists and objects of any depth, as text. */
const leaves = (value: unknown): string[] => {
  if (typeof value === 'number') return [String(value)]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : []
}

function toQuestion(
  text: string,
  kind: string,
  lines: readonly string[],
  sessionOf: ReadonlyMap<string, string>,
): ScoredQuestion {
  return { text, kind, lines, sessions: [...new Set(lines.map(id => sessionOf.get(id)!))] }
}
