import { monthOf } from '#scripts/demo/calendar.ts'
import { barOf, margin, padded, spanOf, widthOf, type Screen } from '#scripts/demo/screen.ts'
import type { Service } from '#scripts/demo/service.ts'
import type { Asked, Found, Listener, Prepared, Story, Told } from '#scripts/demo/story.ts'
import { excerptOf, highlighted, sharedWords } from '#scripts/demo/why.ts'

/** The story as a person reads it, written part by part while it happens. */
type Page = Required<Listener> & {
  begin: () => void
  starting: () => void
  opened: (service: Service) => void
  sum: (story: Story, service: Service) => void
}

/** `now` is the moment the story is told, epoch milliseconds. */
export function createPage(screen: Screen, now: number): Page {
  const { write } = screen
  return {
    begin() {
      chapter(
        screen,
        'Memory Vault: eight months of one conversation',
        'Irene moves to another city, takes up the cello and worries about her cat. An assistant ' +
          'listens. Later it is asked about it all, in other words than were used then.',
      )
    },
    starting: () => write('Starting a service just for this, in a temporary folder …'),
    opened: service => writeOpened(screen, service),
    told: sitting => writeTold(screen, sitting),
    warm({ memories, ms }) {
      write('')
      write(`POST /v1/memory/warmup has ${memories} memories at hand after ${spanOf(ms)}.`)
      chapter(
        screen,
        'What is remembered',
        'The first three that POST /v1/memory/search finds for each question, ✓ before the one that ' +
          'answers it. The bar is the score, how close it comes in meaning; the order also weighs words, ' +
          'times and what was said next to it. Last on the line: what it shares with the question.',
      )
    },
    asked: (asked, number) => writeAsked(screen, asked, { number, now }),
    unanswerable: prepared => writeUnanswerable(screen, prepared),
    prepared: prepared => writePrepared(screen, prepared),
    sum: (story, service) => writeSum(screen, story, service),
  }
}

function chapter({ write }: Screen, title: string, words: string): void {
  write('')
  write(title, { look: 'title' })
  write(words)
  write('')
}

function writeOpened(screen: Screen, { baseUrl, kind, readyMs }: Service): void {
  screen.write(
    kind === 'own'
      ? `Ready at ${baseUrl} after ${spanOf(readyMs)}. It leaves nothing behind.`
      : `Using the service that runs at ${baseUrl}, with a new key and so a vault of the demo's own: ` +
          'yours stays as it is.',
  )
  chapter(
    screen,
    'What was said',
    'Each sitting goes through POST /v1/memory/ingest?wait=true with the times its turns had. On the ' +
      'right: how long until it was stored and could be found.',
  )
}

const dayColumns = 12

function writeTold({ width, paint, write }: Screen, { title, at, turns, tokens, ms }: Told): void {
  const day = padded(dayOf(at), dayColumns, 'left')
  const figures = `${turns} turns  ${padded(`${tokens}`, 3, 'left')} tokens  ${padded(spanOf(ms), 6, 'left')}`
  const room = width - margin - dayColumns - 2 - widthOf(figures) - 2
  const short = widthOf(title) <= room ? title : `${title.slice(0, Math.max(0, room - 1))}…`
  write(`${paint('faint', day)}  ${padded(short, room)}  ${paint('faint', figures)}`)
}

/** Questions and memories stand to the right of their numbers and marks. */
const indent = margin + 4
const marked = (mark: string): string => `${padded(mark, indent - 1, 'left')} `

function writeAsked(
  screen: Screen,
  { question, takes, found, fault, ms }: Asked,
  { number, now }: { number: number; now: number },
): void {
  const { paint, write } = screen
  write(question, { indent, label: marked(`${number}.`), look: 'strong' })
  write(`${takes} · ${spanOf(ms)}`, { indent, look: 'faint' })
  for (const memory of found) writeFound(screen, question, { memory, now })
  if (fault) write(fault, { indent, label: marked(paint('bad', '✗')), look: 'bad' })
  write('')
}

const barCells = 10
/** A memory that answers is shown at more length than the others. */
const linesOfAnswer = 2
const linesOfOther = 1

function writeFound(
  { width, paint, write }: Screen,
  question: string,
  { memory, now }: { memory: Found; now: number },
): void {
  const { role, content, score, window, tier, at, why, isAnswer } = memory
  const bar = `${paint('accent', barOf(score, barCells))} ${score.toFixed(2)}`
  const head = [bar, agoOf(at, now), role, `${window}, tier ${tier}`, why].join(' · ')
  write(head, { indent, label: marked(isAnswer ? paint('good', '✓') : '') })
  const shared = sharedWords(question, content)
  const below = indent + barCells + 1
  const lines = isAnswer ? linesOfAnswer : linesOfOther
  // Lines end between words, and what is left out is shown by an ellipsis at either end.
  const excerpt = excerptOf(content, shared, lines * (width - below - 4))
  if (isAnswer) {
    write(
      highlighted(excerpt, shared, word => paint('strong', word)),
      { indent: below },
    )
  } else write(excerpt, { indent: below, look: 'faint' })
}

function writeUnanswerable({ paint, write }: Screen, { question, context, ms }: Prepared): void {
  write(question, { indent, look: 'strong' })
  write(`never discussed, so asked of POST /v1/memory/prepare · ${spanOf(ms)}`, {
    indent,
    look: 'faint',
  })
  if (context === null) {
    write('context: null. A model is not given what has nothing to do with its question.', {
      indent,
      label: marked(paint('good', '✓')),
    })
  } else {
    write('Something unrelated was recalled.', { indent, label: marked(paint('bad', '✗')) })
  }
}

function writePrepared(screen: Screen, { question, context, tokens, ms }: Prepared): void {
  const { paint, write } = screen
  chapter(
    screen,
    'What a model is given',
    `POST /v1/memory/prepare writes the block that goes in front of the user's next turn: ${tokens} ` +
      `tokens, ${spanOf(ms)}.`,
  )
  for (const line of context?.split('\n') ?? []) {
    const tag = /^\[[^\]]*\]/.exec(line)?.[0] ?? line
    write(wordByWord(tag, word => paint('faint', word)) + line.slice(tag.length), { indent })
  }
  write('')
  write(question, { indent, label: marked(paint('accent', 'you')), look: 'strong' })
}

const wordByWord = (text: string, look: (word: string) => string): string =>
  text.split(' ').map(look).join(' ')

function writeSum(
  screen: Screen,
  { told, stats, medianSearchMs, asked, failed }: Story,
  { kind, key }: Service,
): void {
  const { paint, write } = screen
  const { memories, tokens, oldest, newest } = stats
  const days = [oldest, newest].map(day => (day ? dayOf(Date.parse(day)) : 'never'))
  chapter(
    screen,
    'In short',
    `${memories} memories of ${told.length} sittings, ${days.join(' to ')}: ${tokens} tokens. A search took ` +
      `${spanOf(medianSearchMs)} (the median of ${asked.length}, over HTTP).`,
  )
  const total = asked.length + 2
  if (failed.length === 0) {
    write(`All ${total} questions were answered as they should be.`, { look: 'good' })
  } else {
    write(`Not answered as they should be: ${failed.length} of ${total} questions.`, {
      look: 'bad',
    })
    for (const line of failed) write(line, { indent, label: marked(paint('bad', '✗')) })
  }
  if (kind === 'running') write(`The vault of the demo stays, under the key ${key}.`)
  write('')
}

const dayOf = (at: number): string => `${new Date(at).getUTCDate()} ${monthOf(at)}`

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['month', 30.44 * 24 * 3600_000],
  ['week', 7 * 24 * 3600_000],
  ['day', 24 * 3600_000],
  ['hour', 3600_000],
  ['minute', 60_000],
]

function agoOf(at: number, now: number): string {
  const [unit, size] = units.find(([, size]) => now - at >= size) ?? units.at(-1)!
  return relative.format(-Math.floor((now - at) / size), unit)
}
