import {
  readLines,
  type EvaluationSession,
  type EvaluationTurn,
} from '#scripts/bench/recall/conversation.ts'

export type FillerKind = 'topics' | 'chat'

const DAY_MS = 86_400_000

/**
 * Sessions about nothing that is asked for, to look for evidence among: small talk of two people
 * (`chat`), or everyday requests to an assistant (`topics`). The same for the same arguments.
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
  let wanted = false
  for (const line of readLines('filler.txt')) {
    const [, name] = /^==(?: (\w+))?$/.exec(line) ?? []
    if (name) wanted = name === kind
    if (line.startsWith('==')) {
      if (wanted) scripts.push([])
    } else if (wanted) scripts.at(-1)!.push(line)
  }
  return scripts
}

function toTurn(
  line: string,
  swapped: number,
  speakers: readonly string[],
  random: () => number,
): EvaluationTurn {
  const [who = '', ...rest] = line.split(': ')
  const text = rest.join(': ').replace(/\{([^}]+)\}/g, (_, choices: string) => {
    const options = choices.split('|')
    return options[Math.floor(random() * options.length)]!
  })
  const named = who.length === 1
  const index = (who === 'A' ? 0 : 1) ^ swapped
  return {
    speaker: named ? speakers[index % speakers.length]! : who,
    role: who === 'assistant' ? 'assistant' : 'user',
    text,
  }
}

/** A small generator of numbers in [0, 1), the same on every machine. */
function seededRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
