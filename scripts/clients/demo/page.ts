import { stripVTControlCharacters, styleText } from 'node:util'
import { formatDay } from '#scripts/clients/demo/conversation.ts'
import { excerptAround, highlightWords, sharedWords } from '#scripts/clients/demo/excerpt.ts'
import type { DemoService } from '#scripts/clients/demo/service.ts'
import type {
  AnsweredQuestion,
  PreparedQuestion,
  StoredSitting,
  StoryResult,
} from '#scripts/clients/demo/story.ts'

const styles = {
  title: 'cyan',
  strong: 'bold',
  good: 'green',
  bad: 'red',
  faint: 'dim',
  accent: 'cyan',
} as const

type TextStyle = keyof typeof styles

type Layout = {
  /** Leading spaces of each line; default `margin`. */
  indent?: number
  /** Replaces the leading spaces of the first line. */
  label?: string
  style?: TextStyle
}

type Terminal = {
  /** Usable columns. */
  readonly width: number
  /** Styles a text on a terminal, and not if NO_COLOR is set. */
  paint: (style: TextStyle, text: string) => string
  /** Writes a text, wrapped to the width. */
  write: (text: string, layout?: Layout) => void
}

/** Default indent in columns. */
const margin = 2

const [widthMin, widthMax] = [48, 100]

/** Opens a stream with the width of its terminal; other streams get 100 columns and no colour. */
export function openTerminal(stream: NodeJS.WriteStream): Terminal {
  const isColoured = stream.isTTY && !process.env.NO_COLOR
  const width = Math.max(widthMin, Math.min(widthMax, stream.columns || widthMax))
  const paint: Terminal['paint'] = (style, text) =>
    isColoured ? styleText(styles[style], text, { validateStream: false }) : text
  return {
    width,
    paint,
    write(text, { indent = margin, label = ' '.repeat(indent), style } = {}) {
      for (const [index, line] of wrapText(text, width - indent).entries()) {
        const start = index === 0 ? label : ' '.repeat(indent)
        stream.write(`${start}${style ? paint(style, line) : line}`.trimEnd().concat('\n'))
      }
    },
  }
}

/** A terminal that shows nothing. */
export const silentTerminal: Terminal = { width: widthMax, paint: (_, text) => text, write() {} }

/** Wraps a text between words into lines of at most `width` columns; a longer word gets its own line. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`
    if (lines.length === 0 || stripVTControlCharacters(longer).length > width) lines.push(word)
    else lines[lines.length - 1] = longer
  }
  return lines
}

/** Column of questions and memories, right of their numbers and marks. */
const indent = margin + 4
const markLabel = (mark: string, columns = mark.length): string =>
  `${' '.repeat(indent - 1 - columns)}${mark} `

const barCells = 10
const dayColumns = 12

/** Prints the story while it runs. */
export class StoryPage {
  readonly #terminal: Terminal

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  writeIntroduction(): void {
    this.#writeHeading(
      'Memory Vault: eight months of one conversation',
      'Irene talks with an assistant: she moves to another city, starts to learn the cello and ' +
        'worries about her cat. Months later she asks about it, in other words.',
    )
  }

  writeStarting(): void {
    this.#terminal.write('Starting a service for the demo, in a temporary folder …')
  }

  writeReady({ baseUrl, kind, readyMs }: DemoService): void {
    this.#terminal.write(
      kind === 'own'
        ? `Ready at ${baseUrl} after ${formatDuration(readyMs)}. It is removed at the end.`
        : `Using the service that runs at ${baseUrl}, with a new key and a separate vault: ` +
            'your vault does not change.',
    )
    this.#writeHeading(
      'What was said',
      'Each sitting is stored with POST /v1/memory/ingest?wait=true, with the time of each turn. On the ' +
        'right: how long until it was stored and searchable.',
    )
  }

  writeSitting({ title, at, turns, tokens, ms }: StoredSitting): void {
    const { width, paint, write } = this.#terminal
    const figures = `${turns} turns  ${`${tokens}`.padStart(3)} tokens  ${formatDuration(ms).padStart(6)}`
    const room = Math.max(1, width - margin - dayColumns - 4 - figures.length)
    const short = title.length <= room ? title : `${title.slice(0, room - 1)}…`
    const day = paint('faint', formatDay(at).padStart(dayColumns))
    write(`${day}  ${short.padEnd(room)}  ${paint('faint', figures)}`)
  }

  writeWarmup({ memories, ms }: StoryResult['warmup']): void {
    this.#terminal.write('')
    this.#terminal.write(
      `POST /v1/memory/warmup loaded ${memories} memories in ${formatDuration(ms)}.`,
    )
    this.#writeHeading(
      'What is remembered',
      'The first three results of POST /v1/memory/search for each question; ✓ marks the answer. The ' +
        'bar is the score that they are in order of: how well a result fits by meaning, words, dates and ' +
        'neighbouring turns. Last on the line: what it has in common with the question.',
    )
  }

  writeQuestion(
    { question, takes, found, fault, ms }: AnsweredQuestion,
    { number, now }: { number: number; now: number },
  ): void {
    const { write } = this.#terminal
    write(question, { indent, label: markLabel(`${number}.`), style: 'strong' })
    write(`${takes} · ${formatDuration(ms)}`, { indent, style: 'faint' })
    for (const memory of found) this.#writeMemory(question, memory, now)
    if (fault) this.#writeFault(fault)
    write('')
  }

  #writeMemory(question: string, memory: AnsweredQuestion['found'][number], now: number): void {
    const { width, paint, write } = this.#terminal
    const { role, content, score, window, tier, at, why, isAnswer } = memory
    const full = Math.round(Math.max(0, Math.min(1, score)) * barCells)
    const bar = paint('accent', '█'.repeat(full) + '░'.repeat(barCells - full))
    const age = formatRelativeTime(at, now)
    const head = [`${bar} ${score.toFixed(2)}`, age, role, `${window}, tier ${tier}`, why]
    write(head.join(' · '), { indent, label: markLabel(isAnswer ? paint('good', '✓') : ' ', 1) })
    const shared = sharedWords(question, content)
    const textIndent = indent + barCells + 1
    // Two lines for the answer. Minus 4 a line: it breaks between words, and both ends may have an ellipsis.
    const room = (isAnswer ? 2 : 1) * (width - textIndent - 4)
    const excerpt = excerptAround(content, shared, room)
    if (!isAnswer) write(excerpt, { indent: textIndent, style: 'faint' })
    else {
      const styled = highlightWords(excerpt, shared, word => paint('strong', word))
      write(styled, { indent: textIndent })
    }
  }

  #writeFault(text: string): void {
    const { paint, write } = this.#terminal
    write(text, { indent, label: markLabel(paint('bad', '✗'), 1), style: 'bad' })
  }

  writeUnanswerable({ question, context, ms }: PreparedQuestion): void {
    const { paint, write } = this.#terminal
    const asked = `never discussed; sent to POST /v1/memory/prepare · ${formatDuration(ms)}`
    write(question, { indent, style: 'strong' })
    write(asked, { indent, style: 'faint' })
    if (context !== null) this.#writeFault('Something unrelated was recalled.')
    else {
      write('context: null. A model does not get memories that are unrelated to the question.', {
        indent,
        label: markLabel(paint('good', '✓'), 1),
      })
    }
  }

  writePrepared({ question, context, tokens, ms }: PreparedQuestion): void {
    const { paint, write } = this.#terminal
    this.#writeHeading(
      'What a model is given',
      `POST /v1/memory/prepare builds the block to put before the next turn of the user: ${tokens} ` +
        `tokens, ${formatDuration(ms)}.`,
    )
    for (const line of context?.split('\n') ?? []) {
      const tag = /^\[[^\]]*\]/.exec(line)?.[0] ?? line
      const words = tag.split(' ').map(word => paint('faint', word))
      write(words.join(' ') + line.slice(tag.length), { indent })
    }
    write('')
    write(question, { indent, label: markLabel(paint('accent', 'you'), 3), style: 'strong' })
  }

  /** @param loginLink opens the vault of the demo in the console */
  writeSummary(story: StoryResult, { kind, key }: DemoService, loginLink?: string): void {
    const { write } = this.#terminal
    const { told, stats, medianSearchMs, asked, failed } = story
    const { memories, tokens, oldest, newest } = stats
    const days = [oldest, newest].map(day => (day ? formatDay(Date.parse(day)) : 'never'))
    this.#writeHeading(
      'In short',
      `${memories} memories of ${told.length} sittings, ${days.join(' to ')}: ${tokens} tokens. A search took ` +
        `${formatDuration(medianSearchMs)} (the median of ${asked.length}, over HTTP).`,
    )
    const total = asked.length + 2
    if (failed.length === 0) {
      write(`All ${total} questions were answered as they should be.`, { style: 'good' })
    } else {
      const text = `Not answered as they should be: ${failed.length} of ${total} questions.`
      write(text, { style: 'bad' })
      for (const line of failed) this.#writeFault(line)
    }
    if (kind === 'running') {
      write(`The vault of the demo is not removed; its key is ${key}.`)
      if (loginLink !== undefined) write(`Look at it, by a link that works once: ${loginLink}`)
    }
    write('')
  }

  #writeHeading(title: string, text: string): void {
    const { write } = this.#terminal
    write('')
    write(title, { style: 'title' })
    write(text)
    write('')
  }
}

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

/** Milliseconds as text, such as `1.2 s` or `3.4 ms`. */
function formatDuration(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(1)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}
