import type { Change } from '#scripts/clients/connect/change.ts'

const memoryKey = /\bmk_(?:admin_|org_)?[0-9A-Za-z]{8,}/g

/** A Memory Key as its beginning and end. */
export const maskKeys = (text: string): string =>
  text.replace(memoryKey, key => `${key.slice(0, 6)}…${key.slice(-4)}`)

/** Lines that go and lines that come; keys are masked, and what stays is not shown. */
export function formatDiff({ path, before, after }: Change): string {
  const state = before === null ? ' (new)' : after === null ? ' (removed)' : ''
  const lines = diffLines(splitLines(before), splitLines(after))
  return maskKeys([`${path}${state}`, ...lines].join('\n'))
}

const splitLines = (text: string | null): string[] =>
  text === null || text === '' ? [] : text.replace(/\n$/, '').split('\n')

function diffLines(one: string[], other: string[]): string[] {
  let start = 0
  while (start < one.length && one[start] === other[start]) start++
  let end = 0
  while (
    end < Math.min(one.length, other.length) - start &&
    one.at(-1 - end) === other.at(-1 - end)
  ) {
    end++
  }
  const gone = one.slice(start, one.length - end)
  const come = other.slice(start, other.length - end)
  return [`  line ${start + 1}`, ...commonLines(gone, come)]
}

/** Above this many lines the table of common lines would be large; they are shown in two blocks. */
const linesMax = 1_000

/** Marks each line as gone, come or common; a run of common lines is one line of dots. */
function commonLines(gone: string[], come: string[]): string[] {
  if (gone.length > linesMax || come.length > linesMax) {
    return [...gone.map(line => `- ${line}`), ...come.map(line => `+ ${line}`)]
  }
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
  const lines: string[] = []
  for (let i = 0, j = 0; i < gone.length || j < come.length;) {
    if (i < gone.length && j < come.length && gone[i] === come[j]) {
      if (lines.at(-1) !== '  …') lines.push('  …')
      i++
      j++
    } else if (
      j < come.length &&
      (i === gone.length || lengths[i]![j + 1]! > lengths[i + 1]![j]!)
    ) {
      lines.push(`+ ${come[j++]}`)
    } else lines.push(`- ${gone[i++]}`)
  }
  return lines
}
