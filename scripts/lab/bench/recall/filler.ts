import {
  readLines,
  type EvaluationSession,
  type EvaluationTurn,
} from '#scripts/lab/bench/recall/conversation.ts'

export type FillerKind = 'topics' | 'chat'

const DAY_MS = 86_400_000

/**
 * Sessions unrelated to the questions, as distractors: small talk of two people (`chat`), or everyday
 * requests to an assistant (`topics`). Deterministic.
 */
export function createFillerSessions(
  kind: FillerKind,
  count: number,
  speakers: readonly string[],
  from: number,
  to: number,
): EvaluationSession[] {
  const scripts = readScripts(kind)
  const random = seededRandom(kind.length * 7919 + count)
  return Array.from({ length: count }, (_, i) => {
    const script = scripts[i % scripts.length]!
    const days = Math.floor((random() * (to - from)) / DAY_MS)
    const at = from + days * DAY_MS + Math.floor(random() * 40_000_000)
    const swapped = random() < 0.5 ? 1 : 0
    return { at, turns: script.map(line => toTurn(line, swapped, speakers, random)) }
  })
}

function readScripts(kind: FillerKind): string[][] {
  const scripts: string[][] = []
  let isWanted = false
  for (const line of readLines('filler.txt')) {
    const [, name] = /^==(?: (\w+))?$/.exec(line) ?? []
    if (name) isWanted = name === kind
    if (line.startsWith('==')) {
      if (isWanted) scripts.push([])
    } else if (isWanted) scripts.at(-1)!.push(line)
  }
  return scripts
}

function toTurn(
  line: string,
  swapped: number,
  speakers: readonly string[],
  random: () => number,
): EvaluationTurn {
  const [name = '', ...rest] = line.split(': ')
  const text = rest.join(': ').replace(/\{([^}]+)\}/g, (_, choices: string) => {
    const options = choices.split('|')
    return options[Math.floor(random() * options.length)]!
  })
  const isPlaceholder = name.length === 1
  const index = (name === 'A' ? 0 : 1) ^ swapped
  return {
    speaker: isPlaceholder ? speakers[index % speakers.length]! : name,
    role: name === 'assistant' ? 'assistant' : 'user',
    text,
  }
}

/** A reproducible random generator of numbers in [0, 1) (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
