/** Characters between the lines that begin and end a key, at most. */
const keyLengthMax = 8_000

/** They consume no more than what two lines cannot share: the dashes of one may begin the next. */
const firstLine = /-----BEGIN (?=([A-Z ]{0,30}PRIVATE KEY-----))/g
const lastLine = /-----END (?=([A-Z ]{0,30}PRIVATE KEY-----))/g

/**
 * Private keys in PEM, from their first line to their last, each as start and end in UTF-16 units. First and
 * last lines are found apart: a pattern of both would read 8,000 characters again for every first line.
 */
export function* findPrivateKeys(text: string): Generator<[start: number, end: number]> {
  const lastLines = text.matchAll(lastLine)
  let last = lastLines.next().value
  let reached = 0
  for (const first of text.matchAll(firstLine)) {
    if (first.index < reached) continue
    const contentStart = lineEnd(first)
    while (last && last.index < contentStart) last = lastLines.next().value
    if (!last) return
    if (last.index - contentStart > keyLengthMax) continue
    reached = lineEnd(last)
    yield [first.index, reached]
  }
}

const lineEnd = (match: RegExpExecArray): number => match.index + match[0].length + match[1]!.length
