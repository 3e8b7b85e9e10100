import fc from 'fast-check'

/** A member that is to be cut out, wherever it stands. */
export const dropped = Symbol('dropped')

/** An object as it is to be written: in order, duplicates and all. */
export type Members = readonly (readonly [name: string, value: unknown, mark?: typeof dropped])[]

const membersOf = Symbol('members')

/** An object with its members in this order, some of them twice or to be dropped. */
export type Ordered = { [membersOf]: Members }

export const ordered = (...members: Members): Ordered => ({ [membersOf]: members })

const isOrdered = (value: object): value is Ordered => membersOf in value

export type Written = { text: string; without: string }

/**
 * JSON as some client might write it: blanks anywhere, characters escaped or not, numbers in any
 * spelling. Beside the text, the same text without its dropped members, each gone with one comma.
 */
export function written(value: unknown, random: () => number): Written {
  if (Array.isArray(value)) {
    const pieces = value.map(element => around(written(element, random), random))
    const inside = value.length === 0 ? blanks(random) : ''
    return both(pieces, texts => `[${inside}${texts.join(',')}]`)
  }
  if (typeof value === 'object' && value !== null) {
    if (isOrdered(value)) return object(value[membersOf], random)
    return object(
      Object.entries(value).map(([name, one]) => [name, one]),
      random,
    )
  }
  return same(scalar(value, random))
}

const same = (text: string): Written => ({ text, without: text })

const both = (pieces: readonly Written[], join: (texts: string[]) => string): Written => ({
  text: join(pieces.map(({ text }) => text)),
  without: join(pieces.map(({ without }) => without)),
})

function around({ text, without }: Written, random: () => number): Written {
  const [before, after] = [blanks(random), blanks(random)]
  return { text: before + text + after, without: before + without + after }
}

function object(members: Members, random: () => number): Written {
  if (members.length === 0) return same(`{${blanks(random)}}`)
  const pieces = members.map(([name, value, mark]) => {
    const { text, without } = written(value, random)
    const [lead, trail] = [blanks(random), blanks(random)]
    const head = `${string(name, random)}${blanks(random)}:${blanks(random)}`
    return { lead, trail, head, text, without, gone: mark === dropped }
  })
  const text = pieces.map(({ lead, head, text, trail }) => lead + head + text + trail).join(',')
  let without = ''
  let open: string | undefined
  for (const [index, { lead, head, without: kept, trail, gone }] of pieces.entries()) {
    const isLast = index === pieces.length - 1
    open ??= lead
    if (!gone) {
      without +=
        open + head + kept + (pieces.slice(index + 1).every(({ gone }) => gone) ? '' : `${trail},`)
      open = undefined
    }
    if (isLast) {
      const noneKept = pieces.every(({ gone }) => gone)
      without += noneKept ? pieces[0]!.lead + trail : trail
    }
  }
  return { text: `{${text}}`, without: `{${without}}` }
}

function scalar(value: unknown, random: () => number): string {
  if (typeof value === 'string') return string(value, random)
  if (typeof value !== 'number') return JSON.stringify(value ?? null)
  const spellings = [String(value), `${value}.0`, `${value}e0`, `${value}E+00`, `${value}.000e-0`]
  return Number.isInteger(value) && Math.abs(value) < 1e15
    ? spellings[Math.floor(random() * spellings.length)]!
    : JSON.stringify(value)
}

function string(text: string, random: () => number): string {
  const often = random() < 0.7 ? 0 : 0.3
  let spelled = ''
  for (const character of text) {
    if (random() < often) {
      for (let index = 0; index < character.length; index++) {
        const digits = character.charCodeAt(index).toString(16).padStart(4, '0')
        spelled += `\\u${random() < 0.5 ? digits : digits.toUpperCase()}`
      }
    } else if (character === '/' && random() < 0.5) spelled += '\\/'
    else spelled += JSON.stringify(character).slice(1, -1)
  }
  return `"${spelled}"`
}

function blanks(random: () => number): string {
  if (random() < 0.6) return ''
  const kinds = [' ', '\n', '\t', '\r\n', '  ']
  return kinds[Math.floor(random() * kinds.length)]!.repeat(1 + Math.floor(random() * 3))
}

/** A source of chance that a seed repeats. */
export const chance: fc.Arbitrary<() => number> = fc.noShrink(fc.integer()).map(seed => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
})
