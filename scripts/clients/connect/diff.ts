/** The text of a file as it is and as it will be; null is no file. */
type Texts = { path: string; present: string | null; planned: string | null }

const memoryKey = /\bmk_(?:admin_|org_)?[0-9A-Za-z]{8,}/g

/** Shortens each Memory Key to its beginning and end. */
export const maskKeys = (text: string): string =>
  text.replace(memoryKey, key => `${key.slice(0, 6)}…${key.slice(-4)}`)

/** Shows the lines that go and the lines that come; keys are masked. */
export function formatDiff({ path, present, planned }: Texts): string {
  const state = present === null ? ' (new)' : planned === null ? ' (removed)' : ''
  const hunks = diffLines(present ?? '', planned ?? '').map(({ line, gone, come }) =>
    [`  line ${line}`, ...gone.map(line => `- ${line}`), ...come.map(line => `+ ${line}`)]
      .map(line => line.replace(/\r?\n$/, ''))
      .join('\n'),
  )
  return maskKeys(`${path}${state}\n${hunks.join('\n')}`)
}

/**
 * Takes the changes that led from `before` to `after` out of a text that was changed elsewhere since.
 *
 * @returns undefined where the lines of a change do not stand in the text exactly once.
 */
export function takeOut(text: string, before: string, after: string): string | undefined {
  let rest = `\n${text}`
  for (const { gone, come } of diffLines(before, after)) {
    const written = `\n${come.join('')}`
    const at = rest.indexOf(written)
    if (come.length === 0 || at === -1 || at !== rest.lastIndexOf(written)) return undefined
    rest = `${rest.slice(0, at + 1)}${gone.join('')}${rest.slice(at + written.length)}`
  }
  return rest.slice(1)
}

/** `line` is the number of its first line in the text before. */
type Hunk = { line: number; gone: string[]; come: string[] }

const splitLines = (text: string): string[] => (text === '' ? [] : text.split(/(?<=\n)/))

function diffLines(before: string, after: string): Hunk[] {
  const [one, other] = [splitLines(before), splitLines(after)]
  let start = 0
  while (start < one.length && one[start] === other[start]) start++
  let end = 0
  const shorter = Math.min(one.length, other.length) - start
  while (end < shorter && one.at(-1 - end) === other.at(-1 - end)) end++
  return splitHunk(
    one.slice(start, one.length - end),
    other.slice(start, other.length - end),
    start + 1,
  )
}

/** Above this many lines the table of common lines would be large: the change stays one hunk. */
const linesMax = 1_000

/** Splits a change at the longest sequence of lines that its two sides have in common. */
function splitHunk(gone: string[], come: string[], line: number): Hunk[] {
  if (gone.length > linesMax || come.length > linesMax) return [{ line, gone, come }]
  const lengths = gone.map(() => new Uint16Array(come.length + 1))
  lengths.push(new Uint16Array(come.length + 1))
  for (let i = gone.length - 1; i >= 0; i--) {
    for (let j = come.length - 1; j >= 0; j--) {
      lengths[i]![j] =
        gone[i] === come[j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
    }
  }
  const hunks: Hunk[] = []
  let open: Hunk | undefined
  for (let i = 0, j = 0; i < gone.length || j < come.length;) {
    if (i < gone.length && j < come.length && gone[i] === come[j]) {
      open = undefined
      i++
      j++
      continue
    }
    if (!open) hunks.push((open = { line: line + i, gone: [], come: [] }))
    const comes =
      i === gone.length || (j < come.length && lengths[i]![j + 1]! > lengths[i + 1]![j]!)
    if (comes) open.come.push(come[j++]!)
    else open.gone.push(gone[i++]!)
  }
  return hunks
}
