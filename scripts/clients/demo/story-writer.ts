import { monthName } from '#scripts/clients/demo/relative-dates.ts'
import {
  formatBar,
  margin,
  padText,
  formatDuration,
  displayWidth,
  type Terminal,
} from '#scripts/clients/demo/terminal.ts'
import type { DemoService } from '#scripts/clients/demo/service.ts'
import type {
  AnsweredQuestion,
  FoundMemory,
  StoryListener,
  PreparedQuestion,
  StoryResult,
  IngestedSitting,
} from '#scripts/clients/demo/story.ts'
import { excerptAround, highlightWords, sharedWords } from '#scripts/clients/demo/explain-match.ts'

/** Prints the story while it runs. */
type StoryWriter = Required<StoryListener> & {
  writeIntroduction: () => void
  writeStarting: () => void
  writeReady: (service: DemoService) => void
  writeSummary: (story: StoryResult, service: DemoService) => void
}

/** @param now epoch milliseconds, the reference of relative times */
export function createStoryWriter(screen: Terminal, now: number): StoryWriter {
  const { write } = screen
  return {
    writeIntroduction() {
      writeHeading(
        screen,
        'Memory Vault: eight months of one conversation',
        'Irene talks with an assistant: she moves to another city, starts to learn the cello and ' +
          'worries about her cat. Months later she asks about it, in other words.',
      )
    },
    writeStarting: () => write('Starting a service for the demo, in a temporary folder …'),
    writeReady: service => writeServiceReady(screen, service),
    onSittingStored: sitting => writeSitting(screen, sitting),
    onWarmedUp({ memories, ms }) {
      write('')
      write(`POST /v1/memory/warmup loaded ${memories} memories in ${formatDuration(ms)}.`)
      writeHeading(
        screen,
        'What is remembered',
        'The first three results of POST /v1/memory/search for each question; ✓ marks the answer. The ' +
          'bar is the score that they are in order of: how well a result fits by meaning, words, dates and ' +
          'neighbouring turns. Last on the line: what it has in common with the question.',
      )
    },
    onQuestionAnswered: (answered, number) => writeQuestion(screen, answered, { number, now }),
    onUnanswerable: prepared => writeUnanswerable(screen, prepared),
    onPrepared: prepared => writePreparedQuestion(screen, prepared),
    writeSummary: (story, service) => writeStorySummary(screen, story, service),
  }
}

function writeHeading({ write }: Terminal, title: string, text: string): void {
  write('')
  write(title, { style: 'title' })
  write(text)
  write('')
}

function writeServiceReady(screen: Terminal, { baseUrl, kind, readyMs }: DemoService): void {
  screen.write(
    kind === 'own'
      ? `Ready at ${baseUrl} after ${formatDuration(readyMs)}. It is removed at the end.`
      : `Using the service that runs at ${baseUrl}, with a new key and a separate vault: ` +
          'your vault does not change.',
  )
  writeHeading(
    screen,
    'What was said',
    'Each sitting is stored with POST /v1/memory/ingest?wait=true, with the time of each turn. On the ' +
      'right: how long until it was stored and searchable.',
  )
}

const dayColumns = 12

function writeSitting(
  { width, paint, write }: Terminal,
  { title, at, turns, tokens, ms }: IngestedSitting,
): void {
  const day = padText(formatDay(at), dayColumns, 'left')
  const figures = `${turns} turns  ${padText(`${tokens}`, 3, 'left')} tokens  ${padText(formatDuration(ms), 6, 'left')}`
  const room = width - margin - dayColumns - 2 - displayWidth(figures) - 2
  const short = displayWidth(title) <= room ? title : `${title.slice(0, Math.max(0, room - 1))}…`
  write(`${paint('faint', day)}  ${padText(short, room)}  ${paint('faint', figures)}`)
}

/** Column of questions and memories, right of their numbers and marks. */
const indent = margin + 4
const markLabel = (mark: string): string => `${padText(mark, indent - 1, 'left')} `

function writeQuestion(
  screen: Terminal,
  { question, takes, found, fault, ms }: AnsweredQuestion,
  { number, now }: { number: number; now: number },
): void {
  const { paint, write } = screen
  write(question, { indent, label: markLabel(`${number}.`), style: 'strong' })
  write(`${takes} · ${formatDuration(ms)}`, { indent, style: 'faint' })
  for (const memory of found) writeMemory(screen, question, { memory, now })
  if (fault) write(fault, { indent, label: markLabel(paint('bad', '✗')), style: 'bad' })
  write('')
}

const barCells = 10
/** Lines of an excerpt: more for the answer than for other results. */
const answerLines = 2
const otherLines = 1

function writeMemory(
  { width, paint, write }: Terminal,
  question: string,
  { memory, now }: { memory: FoundMemory; now: number },
): void {
  const { role, content, score, window, tier, at, why, isAnswer } = memory
  const bar = `${paint('accent', formatBar(score, barCells))} ${score.toFixed(2)}`
  const head = [bar, formatRelativeTime(at, now), role, `${window}, tier ${tier}`, why].join(' · ')
  write(head, { indent, label: markLabel(isAnswer ? paint('good', '✓') : '') })
  const shared = sharedWords(question, content)
  const textIndent = indent + barCells + 1
  const lines = isAnswer ? answerLines : otherLines
  // Minus 4 per line: lines break between words, and an excerpt may have an ellipsis at both ends.
  const excerpt = excerptAround(content, shared, lines * (width - textIndent - 4))
  if (isAnswer) {
    write(
      highlightWords(excerpt, shared, word => paint('strong', word)),
      { indent: textIndent },
    )
  } else write(excerpt, { indent: textIndent, style: 'faint' })
}

function writeUnanswerable(
  { paint, write }: Terminal,
  { question, context, ms }: PreparedQuestion,
): void {
  write(question, { indent, style: 'strong' })
  write(`never discussed; sent to POST /v1/memory/prepare · ${formatDuration(ms)}`, {
    indent,
    style: 'faint',
  })
  if (context === null) {
    write('context: null. A model does not get memories that are unrelated to the question.', {
      indent,
      label: markLabel(paint('good', '✓')),
    })
  } else {
    write('Something unrelated was recalled.', { indent, label: markLabel(paint('bad', '✗')) })
  }
}

function writePreparedQuestion(
  screen: Terminal,
  { question, context, tokens, ms }: PreparedQuestion,
): void {
  const { paint, write } = screen
  writeHeading(
    screen,
    'What a model is given',
    `POST /v1/memory/prepare builds the block to put before the next turn of the user: ${tokens} ` +
      `tokens, ${formatDuration(ms)}.`,
  )
  for (const line of context?.split('\n') ?? []) {
    const tag = /^\[[^\]]*\]/.exec(line)?.[0] ?? line
    write(styleWords(tag, word => paint('faint', word)) + line.slice(tag.length), { indent })
  }
  write('')
  write(question, { indent, label: markLabel(paint('accent', 'you')), style: 'strong' })
}

const styleWords = (text: string, style: (word: string) => string): string =>
  text.split(' ').map(style).join(' ')

function writeStorySummary(
  screen: Terminal,
  { told, stats, medianSearchMs, asked, failed }: StoryResult,
  { kind, key }: DemoService,
): void {
  const { paint, write } = screen
  const { memories, tokens, oldest, newest } = stats
  const days = [oldest, newest].map(day => (day ? formatDay(Date.parse(day)) : 'never'))
  writeHeading(
    screen,
    'In short',
    `${memories} memories of ${told.length} sittings, ${days.join(' to ')}: ${tokens} tokens. A search took ` +
      `${formatDuration(medianSearchMs)} (the median of ${asked.length}, over HTTP).`,
  )
  const total = asked.length + 2
  if (failed.length === 0) {
    write(`All ${total} questions were answered as they should be.`, { style: 'good' })
  } else {
    write(`Not answered as they should be: ${failed.length} of ${total} questions.`, {
      style: 'bad',
    })
    for (const line of failed) write(line, { indent, label: markLabel(paint('bad', '✗')) })
  }
  if (kind === 'running') write(`The vault of the demo is not removed; its key is ${key}.`)
  write('')
}

const formatDay = (at: number): string => `${new Date(at).getUTCDate()} ${monthName(at)}`

const relativeTimeFormat = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

const timeUnits: [Intl.RelativeTimeFormatUnit, number][] = [
  ['month', 30.44 * 24 * 3600_000],
  ['week', 7 * 24 * 3600_000],
  ['day', 24 * 3600_000],
  ['hour', 3600_000],
  ['minute', 60_000],
]

function formatRelativeTime(at: number, now: number): string {
  const [unit, size] = timeUnits.find(([, size]) => now - at >= size) ?? timeUnits.at(-1)!
  return relativeTimeFormat.format(-Math.floor((now - at) / size), unit)
}
